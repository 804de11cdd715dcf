"""Decides what may be written now, from the desired and the observed state. Pure.

The caller asks the schedulers and Kubernetes, and carries the decision out.
"""

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from caraway_kube import naming
from caraway_kube.api.kinds import Object, ObjectRef, ref
from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.kube import planning
from caraway_operator.policy import rollout
from caraway_operator.policy.rollout import RolloutStep
from caraway_operator.scaling import draining
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.pods import TEMPLATE_HASH, PodView, WorkloadProblem, WorkloadView
from caraway_operator.states.progress import ExecutorDrain, ReconcileProgress

COMPONENTS = (EXECUTOR, SCHEDULER, HEAD, STATE)
_KINDS = frozenset({"StatefulSet", "Deployment"})


@dataclass(frozen=True, slots=True)
class Decision:
    """The allowed writes, and other work."""

    replicas: int = 0
    partition: int = 0
    hold: frozenset[str] = frozenset()
    start_drain: str | None = None
    cancel_drain: str | None = None
    pods_to_delete: tuple[PodView, ...] = ()
    progress: ReconcileProgress = field(default_factory=ReconcileProgress)
    is_rolling: bool = False
    rollout: str = ""
    problem: WorkloadProblem | None = None
    is_scaling: bool = False
    scaling: str = ""


def with_template_hashes(objects: Sequence[Object]) -> list[Object]:
    """Return the objects, with the hash of the pod template as an annotation of each workload."""
    return [_with_hash(object_) if object_["kind"] in _KINDS else object_ for object_ in objects]


def template_hashes(objects: Sequence[Object]) -> dict[str, str]:
    """Return the hash of each component's pod template."""
    return {
        component_of(object_): object_["metadata"]["annotations"][TEMPLATE_HASH]
        for object_ in objects
        if object_["kind"] in _KINDS
    }


def component_of(object_: Object) -> str:
    """Return the component that an object belongs to."""
    component: str = (object_["metadata"].get("labels") or {}).get(naming.COMPONENT_LABEL, "")
    return component


def needs_schedulers(state: ClusterState) -> bool:
    """Return whether the decision depends on how schedulers see the executors."""
    workload = state.workloads.get(EXECUTOR)
    if workload is None:
        return False
    is_changing = any(state.is_outdated(component) for component in state.workloads)
    is_mixed = any(
        pod.component == EXECUTOR and pod.revision != workload.revision for pod in state.pods
    )
    is_shrinking = state.desired_executors < workload.replicas
    return is_changing or is_mixed or is_shrinking or state.progress.drain is not None


def decide(state: ClusterState) -> Decision:
    """Decide how far the cluster may move towards its desired state now."""
    workload = state.workloads.get(EXECUTOR)
    if workload is None or state.spec.stopped:
        # Nothing is serving, or nothing should: no query has to be protected.
        drain = state.progress.drain
        return Decision(
            state.desired_executors,
            0,
            cancel_drain=drain.executor if drain else None,
            progress=ReconcileProgress(
                executors=state.progress.executors, was_ready=state.progress.was_ready
            ),
        )
    step = rollout.next_rollout_step(state)
    if step.touches_executors:
        return _rolling(state, workload, step)
    scaling = draining.next_drain_step(state)
    return replace(
        _rollout_decision(state, step, scaling.drain),
        replicas=scaling.replicas,
        start_drain=scaling.start_drain,
        cancel_drain=scaling.cancel_drain or step.cancel_drain,
        is_scaling=scaling.is_waiting,
        scaling=scaling.reason,
    )


def is_capable_by_pods(state: ClusterState) -> bool:
    """Return whether Kubernetes counts enough ready executors to replace another one."""
    least = min_ready_executors(state.spec, state.desired_executors, ())
    return least <= sum(
        pod.is_ready and not pod.is_terminating for pod in state.pods if pod.component == EXECUTOR
    )


def apply_decision(
    objects: Sequence[Object], decision: Decision
) -> tuple[list[Object], list[ObjectRef]]:
    """Return the objects with the decided replicas and partition, and those to hold back."""
    settled = [
        _with_replicas(object_, decision) if component_of(object_) == EXECUTOR else object_
        for object_ in objects
    ]
    hold = [
        ref(object_)
        for object_ in settled
        if object_["kind"] in _KINDS and component_of(object_) in decision.hold
    ]
    return settled, hold


def min_ready_executors(
    spec: CarawayClusterSpec, desired: int, executors: Collection[ExecutorView]
) -> int:
    """Return how many executors must be ready before another one is replaced."""
    given = spec.update_strategy.min_ready_executors
    least = max(1, desired - 1) if given is None else given
    # Schedulers count only the executors of their own protocol version.
    refused = sum(each.is_refused for each in executors)
    return max(min(least, desired - refused), 1 if desired and least else 0)


def _rolling(state: ClusterState, workload: WorkloadView, step: RolloutStep) -> Decision:
    # No executor is removed during a rollout.
    replicas = max(workload.replicas, state.desired_executors + step.surge)
    drain = state.progress.drain
    if drain is not None and drain.purpose == "scale":
        return replace(
            _rollout_decision(state, step, None), replicas=replicas, cancel_drain=drain.executor
        )
    return replace(
        _rollout_decision(state, step, step.drain),
        replicas=replicas,
        start_drain=step.start_drain,
        cancel_drain=step.cancel_drain,
        pods_to_delete=step.pods_to_delete,
    )


def _rollout_decision(
    state: ClusterState, step: RolloutStep, drain: ExecutorDrain | None
) -> Decision:
    return Decision(
        replicas=0,
        partition=step.partition,
        hold=step.hold,
        progress=replace(state.progress, drain=drain, step=step.step, since=step.since),
        is_rolling=step.is_active,
        rollout=step.message,
        problem=step.problem,
    )


def _with_hash(object_: Object) -> Object:
    metadata = object_["metadata"]
    stamp = {TEMPLATE_HASH: planning.digest(object_["spec"]["template"])}
    annotations = {**(metadata.get("annotations") or {}), **stamp}
    return {**object_, "metadata": {**metadata, "annotations": annotations}}


def _with_replicas(object_: Object, decision: Decision) -> Object:
    if object_["kind"] != "StatefulSet":
        return object_
    changed = copy.copy(object_)
    changed["spec"] = {
        **object_["spec"],
        "replicas": decision.replicas,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": decision.partition},
        },
    }
    return changed
