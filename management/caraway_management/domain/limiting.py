"""Applies the limits of a plan: what may be added, and what runs within them."""

from collections.abc import Mapping
from typing import Any

from caraway_kube.resources import quantities
from caraway_management.domain import plans, refusals
from caraway_management.domain.plans import UNLIMITED, Limits, ResourceLimits


def check_apps(limits: Limits, present: int) -> None:
    """Check that an organization with a number of projects may have another one.

    Raises:
        RefusedError: its plan allows no more.
    """
    _check("apps", limits.apps, present, "projects; delete one")


def check_manifests(limits: Limits) -> None:
    """Check that a project may have its manifest deployed.

    Raises:
        RefusedError: the plan allows no manifest.
    """
    _check("pods", limits.pods, 0, "manifests")


def _check(name: str, limit: int, present: int, words: str) -> None:
    if plans.is_exceeded(limit, present + 1):
        raise refusals.over_limit(
            f"{name}: the plan allows {limit} {words}, or change the plan of the organization"
        )


def within(config: Mapping[str, Any], limits: Limits) -> dict[str, object]:
    """Return the config of a deployment with what exceeds the limits lowered to them.

    A plan may have become smaller since the config was written.
    """
    lowered = dict(config)
    if "replicas" in lowered:
        lowered["replicas"] = _lower(lowered["replicas"], limits.replicas)
    _lower_resources(lowered, limits.resources)
    if isinstance(executor := lowered.get("executor"), Mapping):
        executor = dict(executor)
        if "replicas" in executor:
            executor["replicas"] = _lower(executor["replicas"], limits.replicas)
        _lower_resources(executor, limits.resources)
        lowered["executor"] = executor
    return lowered


def _lower(number: int, limit: int) -> int:
    return number if limit == UNLIMITED else min(number, limit)


def _lower_resources(config: dict[str, Any], limits: ResourceLimits | None) -> None:
    if "resources" not in config:
        return
    if limits is None:
        # Without private compute, containers have the sizes of the installation.
        del config["resources"]
        return
    most = {"cpu": str(limits.max_cpu), "memory": f"{limits.max_memory_gi}Gi"}
    config["resources"] = {
        kind: {name: _lower_quantity(amount, most.get(name)) for name, amount in amounts.items()}
        for kind, amounts in config["resources"].items()
    }


def _lower_quantity(amount: str, most: str | None) -> str:
    if most is None or quantities.number(amount) <= quantities.number(most):
        return amount
    return most
