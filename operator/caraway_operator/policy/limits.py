"""Clamps the spec of a cluster to the limits of its organization. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from caraway_kube import naming
from caraway_kube.resources import quantities
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.limits import UNLIMITED, CarawayLimitsSpec, ResourceLimits
from caraway_kube.resources.pods import (
    ComponentSpec,
    ContainerResources,
    ExecutorSpec,
    SchedulerSpec,
)
from caraway_kube.resources.problems import SpecProblem
from caraway_operator.manifests import sizing

_Pods = TypeVar("_Pods", bound=ComponentSpec)


@dataclass(frozen=True, slots=True)
class ClampedValue:
    """A value that a limit lowered."""

    path: str
    desired: str
    given: str
    limit: str

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.desired} was lowered to {self.given} by the limit '{self.limit}'"
        )


@dataclass(frozen=True, slots=True)
class ClampedSpec:
    """The spec within its limits. If anything is `refused`, none of it may be applied."""

    spec: CarawayClusterSpec
    clamped: tuple[ClampedValue, ...] = ()
    refused: tuple[SpecProblem, ...] = ()


def clamp(
    spec: CarawayClusterSpec, limits: CarawayLimitsSpec | None, *, others: int = 0
) -> ClampedSpec:
    """Lower values that exceed the limits, and refuse what cannot be lowered.

    `others` is the number of older clusters of the organization.
    """
    if limits is None:
        return ClampedSpec(spec)
    refused = tuple(_refused(limits, others))
    clamped: list[ClampedValue] = []
    scheduler = _replicas_of_scheduler(spec.scheduler, limits, clamped)
    executor = _replicas_of_executor(spec.executor, limits, clamped)
    state = spec.state.model_copy(
        update={
            "store_resources": _resources(
                "spec.state.storeResources",
                sizing.STORE,
                spec.state.store_resources,
                limits.resources,
                clamped,
            )
        }
    )
    changed = {
        naming.HEAD: _pods(spec.head, naming.HEAD, limits.resources, clamped),
        naming.SCHEDULER: _pods(scheduler, naming.SCHEDULER, limits.resources, clamped),
        naming.EXECUTOR: _pods(executor, naming.EXECUTOR, limits.resources, clamped),
        naming.STATE: _pods(state, naming.STATE, limits.resources, clamped),
    }
    lowered = spec.model_copy(update=changed)
    return ClampedSpec(lowered, tuple(clamped), refused)


def _refused(limits: CarawayLimitsSpec, others: int) -> Iterator[SpecProblem]:
    if limits.pods == 0:
        message = "the limit 'pods' allows no manifest; ask for a higher limit"
        yield SpecProblem("spec.manifest", message)
    if limits.apps != UNLIMITED and others >= limits.apps:
        yield SpecProblem(
            "spec.organization",
            f"the limit 'apps' allows {limits.apps} clusters, and {others} older ones exist; "
            "delete one, or ask for a higher limit",
        )


def _replicas_of_scheduler(
    spec: SchedulerSpec, limits: CarawayLimitsSpec, clamped: list[ClampedValue]
) -> SchedulerSpec:
    replicas = _count("spec.scheduler.replicas", spec.replicas, limits, clamped)
    return spec.model_copy(update={"replicas": replicas})


def _replicas_of_executor(
    spec: ExecutorSpec, limits: CarawayLimitsSpec, clamped: list[ClampedValue]
) -> ExecutorSpec:
    changed: dict[str, int] = {
        "replicas": _count("spec.executor.replicas", spec.replicas, limits, clamped)
    }
    for field, key in (("min_replicas", "minReplicas"), ("max_replicas", "maxReplicas")):
        if (value := getattr(spec, field)) is not None:
            changed[field] = _count(f"spec.executor.{key}", value, limits, clamped)
    return spec.model_copy(update=changed)


def _count(path: str, desired: int, limits: CarawayLimitsSpec, clamped: list[ClampedValue]) -> int:
    if limits.replicas == UNLIMITED or desired <= limits.replicas:
        return desired
    clamped.append(ClampedValue(path, str(desired), str(limits.replicas), "replicas"))
    return limits.replicas


def _pods(
    spec: _Pods, component: str, limits: ResourceLimits | None, clamped: list[ClampedValue]
) -> _Pods:
    path = f"spec.{component}.resources"
    resources = _resources(path, component, spec.resources, limits, clamped)
    return spec.model_copy(update={"resources": resources})


def _resources(
    path: str,
    component: str,
    given: ContainerResources,
    limits: ResourceLimits | None,
    clamped: list[ClampedValue],
) -> ContainerResources:
    if limits is None:
        return given
    most = {
        "cpu": (limits.max_cpu, "resources.max_cpu", ""),
        "memory": (limits.max_memory_gi, "resources.max_memory_gi", "Gi"),
    }
    # Defaults are lowered too. Without a CPU limit, the cores that the process uses become one.
    effective = sizing.effective(component, given)
    asked = dict(effective.limits)
    if limits.max_cpu is not None:
        asked.setdefault("cpu", str(sizing.cores(effective)))
    return ContainerResources(
        requests=_lowered(f"{path}.requests", effective.requests, most, clamped, given.requests),
        limits=_lowered(f"{path}.limits", asked, most, clamped, given.limits),
    )


def _lowered(
    path: str,
    asked: Mapping[str, str],
    most: Mapping[str, tuple[int | None, str, str]],
    clamped: list[ClampedValue],
    written: Mapping[str, str],
) -> dict[str, str]:
    lowered = dict(asked)
    for name, (limit, word, unit) in most.items():
        if limit is None or name not in lowered:
            continue
        highest = f"{limit}{unit}"
        if quantities.number(lowered[name]) > quantities.number(highest):
            if name in written:
                clamped.append(ClampedValue(f"{path}.{name}", lowered[name], highest, word))
            lowered[name] = highest
    return lowered
