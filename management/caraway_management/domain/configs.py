"""The settings of a project's runtime: image, replicas, resources and storage, and their rules."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from caraway_kube.resources import quantities
from caraway_management.domain import plans, refusals
from caraway_management.domain.plans import Limits
from caraway_management.domain.platform import CHANNELS

FIELDS = (
    "registry", "image", "image_tag", "update_channel", "version", "replicas", "node_group",
    "resources", "executor", "storage_size_gb",
)  # fmt: skip
"""The fields of `Project.config`, in the order in which they are shown."""
DEFAULTS: Mapping[str, object] = {"update_channel": "stable", "replicas": 1}
MOST_REPLICAS = 10
_GIB = 1024**3
_GB = 1000**3
_STABLE_TAG = re.compile(r"v?\d{1,5}(\.\d{1,5}){0,2}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_IMAGE = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_REGISTRY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?(?:/[a-z0-9._/-]+)?")
_VERSION = re.compile(r"\d{1,5}(\.\d{1,5}){0,2}|\d{1,5}(\.\d{1,5})?\.x")
_NODE_GROUP = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SHAPES = {
    "registry": (_REGISTRY, "must be a host name, with a port or path if needed"),
    "image": (_IMAGE, "must be the name of an image, such as 'caraway/caraway'"),
    "image_tag": (_TAG, "must be the tag of an image"),
    "version": (_VERSION, "must be a version or a range of versions, such as '2.1' or '2.x'"),
    "node_group": (_NODE_GROUP, "must be lower-case letters, digits and '-'"),
}
_QUANTITIES = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of an organization's plan for its projects."""

    limits: Limits
    has_image_tags: bool
    """True if projects may run other images than those of their channel."""

    @classmethod
    def from_plan(cls, plan: str, limits: Limits) -> "Allowance":
        """Return the allowance of a plan."""
        return cls(limits, plan == "enterprise")


def merge(
    config: Mapping[str, object], changes: Mapping[str, object], allowance: Allowance
) -> dict[str, object]:
    """Return a config with changed settings. None sets a setting back to its default.

    Only what changes is checked against the plan: it may have become smaller since.

    Raises:
        RefusedError: a setting is wrong in itself, or not in the plan.
    """
    merged = dict(config)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _checked(name, value, allowance.limits)
    _check_tag(merged, changes, allowance)
    _check_instances(merged, changes, allowance.limits)
    return merged


def show(config: Mapping[str, object]) -> dict[str, object]:
    """Return all settings, with defaults."""
    return {name: config.get(name, DEFAULTS.get(name)) for name in FIELDS}


def _checked(name: str, value: Any, limits: Limits) -> object:
    if name in _SHAPES:
        pattern, message = _SHAPES[name]
        if len(value) > 255 or not pattern.fullmatch(value):
            raise refusals.invalid_field(name, message)
        return value
    match name:
        case "update_channel":
            if value not in CHANNELS:
                raise refusals.invalid_field(name, f"must be one of {', '.join(CHANNELS)}")
            return value
        case "replicas":
            return _count(name, value, 1, MOST_REPLICAS)
        case "storage_size_gb":
            return _count(name, value, 1, plans.MOST_STORAGE_GB)
        case "resources":
            return _resources(name, value, limits)
        case _:
            return _executor(value, limits)


def _executor(value: Mapping[str, Any], limits: Limits) -> dict[str, object]:
    checked: dict[str, object] = {}
    if value.get("replicas") is not None:
        checked["replicas"] = _count(
            "executor.replicas", value["replicas"], 0, plans.MOST_INSTANCES
        )
    if value.get("storage_size_gb") is not None:
        checked["storage_size_gb"] = _count(
            "executor.storage_size_gb", value["storage_size_gb"], 1, plans.MOST_STORAGE_GB
        )
    if value.get("resources") is not None:
        checked["resources"] = _resources("executor.resources", value["resources"], limits)
    return checked


def _count(field: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise refusals.invalid_field(field, f"must be an integer from {least} to {most}")
    return value


def _check_tag(
    config: Mapping[str, Any], changes: Mapping[str, object], allowance: Allowance
) -> None:
    tag = config.get("image_tag")
    if tag is None or not {"image_tag", "update_channel"} & set(changes):
        return
    if changes.get("image_tag") is not None and not allowance.has_image_tags:
        raise refusals.forbidden(
            "image_tag needs the enterprise plan; leave it out and choose an update_channel",
            "image_tag_requires_enterprise",
        )
    channel = config.get("update_channel", DEFAULTS["update_channel"])
    if channel == "stable" and not _STABLE_TAG.fullmatch(tag):
        raise refusals.invalid_field(
            "image_tag",
            f"'{tag}' is no stable version, such as 1.2.3; choose another tag or update_channel",
            "invalid_stable_image_tag",
        )


def _check_instances(
    config: Mapping[str, Any], changes: Mapping[str, object], limits: Limits
) -> None:
    replicas = config.get("replicas", DEFAULTS["replicas"])
    executors = config.get("executor", {}).get("replicas", 0)
    for field, name, number in (
        ("replicas", "replicas", replicas), ("executor", "executor.replicas", executors),
    ):  # fmt: skip
        if changes.get(field) is not None and plans.is_exceeded(limits.replicas, number):
            raise refusals.over_limit(
                f"{name}: the plan allows {limits.replicas}, and {number} are wanted"
            )
    if replicas + executors > plans.MOST_INSTANCES:
        raise refusals.invalid_field(
            "replicas",
            f"a project has at most {plans.MOST_INSTANCES} instances, executors included",
        )


def _resources(field: str, value: Mapping[str, Any], limits: Limits) -> dict[str, object]:
    if limits.resources is None:
        raise refusals.over_limit(f"{field}: the plan has no private compute; leave {field} out")
    checked: dict[str, object] = {}
    numbers: dict[str, dict[str, Decimal]] = {}
    for kind in ("limits", "requests"):
        given = value.get(kind) or {}
        if wrong := sorted(set(given) - set(_QUANTITIES)):
            raise refusals.invalid_field(f"{field}.{kind}.{wrong[0]}", "unknown resource")
        numbers[kind] = {
            name: _quantity(f"{field}.{kind}.{name}", name, amount, limits)
            for name, amount in given.items()
        }
        if given:
            checked[kind] = {
                name: quantities.canonical(str(amount)) for name, amount in given.items()
            }
    for name, requested in numbers["requests"].items():
        if requested > numbers["limits"].get(name, requested):
            raise refusals.invalid_field(
                f"{field}.requests.{name}", "must not be more than the limit"
            )
    return checked


def _quantity(field: str, name: str, amount: str | float, limits: Limits) -> Decimal:
    assert limits.resources is not None
    try:
        number = quantities.number(str(amount))
    except ValueError as exc:
        raise refusals.invalid_field(field, str(exc)) from exc
    least, most, words, allowed, unit = {
        "cpu": (
            plans.LEAST_CPU, plans.MOST_CPU,
            f"{plans.LEAST_CPU} to {plans.MOST_CPU:g} CPUs", limits.resources.max_cpu, "CPUs",
        ),
        "memory": (
            plans.LEAST_MEMORY_GB * _GB, plans.MOST_MEMORY_GB * _GIB,
            f"{plans.LEAST_MEMORY_GB} to {plans.MOST_MEMORY_GB} GB",
            limits.resources.max_memory_gi * _GIB, "GiB",
        ),
        "ephemeral-storage": (
            0, plans.MOST_STORAGE_GB * _GIB,
            f"at most {plans.MOST_STORAGE_GB} GB", plans.MOST_STORAGE_GB * _GIB, "GB",
        ),
    }[name]  # fmt: skip
    if not least <= number <= most:
        raise refusals.invalid_field(field, f"must be {words}")
    if number > allowed:
        shown = allowed if name == "cpu" else allowed // _GIB
        raise refusals.over_limit(f"{field}: the plan allows {shown} {unit}")
    return number
