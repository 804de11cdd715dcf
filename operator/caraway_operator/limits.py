"""An organization's limits over what a cluster asks for: pure, and told in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from caraway_operator import naming
from caraway_operator.manifests import sizing
from caraway_operator.resources import quantities
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.resources.limits import UNLIMITED, LimitsSpec, ResourceLimits
from caraway_operator.resources.pods import Executor, Pods, Resources, Scheduler
from caraway_operator.resources.problems import SpecProblem

_Pods = TypeVar("_Pods", bound=Pods)


@dataclass(frozen=True, slots=True)
class Clamped:
    """One value that was lowered: where, from what, to what, and by which limit."""

    path: str
    wanted: str
    given: str
    limit: str

    def __str__(self) -> str:
        return f"{self.path}: {self.wanted} was lowered to {self.given} by the limit '{self.limit}'"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a cluster gets. With `refused`, nothing of it may be applied."""

    spec: ClusterSpec
    clamped: tuple[Clamped, ...] = ()
    refused: tuple[SpecProblem, ...] = ()


def clamp(spec: ClusterSpec, limits: LimitsSpec | None, *, others: int = 0) -> Allowed:
    """Lower what goes beyond the limits, and refuse what cannot be lowered.

    `others` is how many clusters of the organization came before this one.
    """
    if limits is None:
        return Allowed(spec)
    refused = tuple(_refused(limits, others))
    clamped: list[Clamped] = []
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
    return Allowed(lowered, tuple(clamped), refused)


def _refused(limits: LimitsSpec, others: int) -> Iterator[SpecProblem]:
    if limits.pods == 0:
        message = "the limit 'pods' allows no manifest; have it raised"
        yield SpecProblem("spec.manifest", message)
    if limits.apps != UNLIMITED and others >= limits.apps:
        yield SpecProblem(
            "spec.organization",
            f"the limit 'apps' allows {limits.apps} clusters, and {others} came before this one; "
            "delete one, or have it raised",
        )


def _replicas_of_scheduler(
    spec: Scheduler, limits: LimitsSpec, clamped: list[Clamped]
) -> Scheduler:
    replicas = _count("spec.scheduler.replicas", spec.replicas, limits, clamped)
    return spec.model_copy(update={"replicas": replicas})


def _replicas_of_executor(spec: Executor, limits: LimitsSpec, clamped: list[Clamped]) -> Executor:
    changed: dict[str, int] = {
        "replicas": _count("spec.executor.replicas", spec.replicas, limits, clamped)
    }
    for field, key in (("min_replicas", "minReplicas"), ("max_replicas", "maxReplicas")):
        if (value := getattr(spec, field)) is not None:
            changed[field] = _count(f"spec.executor.{key}", value, limits, clamped)
    return spec.model_copy(update=changed)


def _count(path: str, wanted: int, limits: LimitsSpec, clamped: list[Clamped]) -> int:
    if limits.replicas == UNLIMITED or wanted <= limits.replicas:
        return wanted
    clamped.append(Clamped(path, str(wanted), str(limits.replicas), "replicas"))
    return limits.replicas


def _pods(
    spec: _Pods, component: str, limits: ResourceLimits | None, clamped: list[Clamped]
) -> _Pods:
    path = f"spec.{component}.resources"
    resources = _resources(path, component, spec.resources, limits, clamped)
    return spec.model_copy(update={"resources": resources})


def _resources(
    path: str,
    component: str,
    given: Resources,
    limits: ResourceLimits | None,
    clamped: list[Clamped],
) -> Resources:
    if limits is None:
        return given
    most = {
        "cpu": (limits.max_cpu, "resources.max_cpu", ""),
        "memory": (limits.max_memory_gi, "resources.max_memory_gi", "Gi"),
    }
    # Defaults are lowered as well, and who has no CPU limit gets one: the cores that it counts on.
    effective = sizing.effective(component, given)
    asked = dict(effective.limits)
    if limits.max_cpu is not None:
        asked.setdefault("cpu", str(sizing.cores(effective)))
    return Resources(
        requests=_lowered(f"{path}.requests", effective.requests, most, clamped, given.requests),
        limits=_lowered(f"{path}.limits", asked, most, clamped, given.limits),
    )


def _lowered(
    path: str,
    asked: Mapping[str, str],
    most: Mapping[str, tuple[int | None, str, str]],
    clamped: list[Clamped],
    written: Mapping[str, str],
) -> dict[str, str]:
    lowered = dict(asked)
    for name, (limit, word, unit) in most.items():
        if limit is None or name not in lowered:
            continue
        highest = f"{limit}{unit}"
        if quantities.number(lowered[name]) > quantities.number(highest):
            if name in written:
                clamped.append(Clamped(f"{path}.{name}", lowered[name], highest, word))
            lowered[name] = highest
    return lowered
