"""Rolls out new pod templates one step at a time, so that no query fails. Pure.

The order is: one executor, the schedulers, the remaining executors one by one, the state, the head.
The first executor shows whether the new pods start at all. Executors that speak a new version of
the protocol serve only new schedulers. They wait for those, and the remaining executors follow.
A pod that does not start stops the rollout; pods that are not replaced yet keep serving.

Schedulers that refuse the operator, such as those of another release, cannot be asked. The rollout
then goes by the pods: executors drain themselves as they stop.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.scaling import draining
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.pods import (
    WAITING_FOR_ROOM,
    PodView,
    WorkloadProblem,
    WorkloadView,
)
from caraway_operator.states.progress import ExecutorDrain

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The writes that are allowed now, and the steps before others."""

    hold: frozenset[str] = frozenset()
    """Components whose new template is not applied yet."""
    partition: int = 0
    surge: int = 0
    """Executors beyond the desired number, so that a single one can be replaced."""
    drain: ExecutorDrain | None = None
    start_drain: str | None = None
    cancel_drain: str | None = None
    pods_to_delete: tuple[PodView, ...] = ()
    """Broken pods, for which a StatefulSet would wait instead of replacing them."""
    is_active: bool = False
    touches_executors: bool = False
    """Executors are being replaced, so none may be removed."""
    step: str = ""
    since: float = 0.0
    message: str = ""
    problem: WorkloadProblem | None = None


def next_rollout_step(state: ClusterState) -> RolloutStep:
    """Return the next step towards the desired templates."""
    pending = {component for component in state.workloads if state.is_outdated(component)}
    executors = _executors(state, EXECUTOR in pending)
    canary = _has_canary(state, executors)
    schedulers_done = SCHEDULER not in pending and _is_complete(state, SCHEDULER)
    hold: set[str] = set()
    if SCHEDULER in pending and not canary and _serves(state, SCHEDULER):
        hold.add(SCHEDULER)
    is_scheduler_due = SCHEDULER in pending or not schedulers_done
    if executors.is_active and canary and is_scheduler_due and not executors.problem:
        # New executors may serve only new schedulers, so the schedulers come first.
        executors = _paused(state, executors)
    others_done = schedulers_done and not executors.is_active and _is_complete(state, EXECUTOR)
    if STATE in pending and not others_done and _serves(state, STATE):
        hold.add(STATE)
    # The head stores its data in the state, so it restarts once the new state is ready.
    state_done = others_done and STATE not in pending and _is_complete(state, STATE)
    if HEAD in pending and not state_done and _serves(state, HEAD):
        hold.add(HEAD)
    step = replace(
        executors,
        hold=frozenset(hold),
        touches_executors=executors.is_active,
        pods_to_delete=(*executors.pods_to_delete, *_stuck(state, pending)),
    )
    return _with_progress(state, step, pending)


def _executors(state: ClusterState, is_pending: bool) -> RolloutStep:
    workload, drain = state.workloads.get(EXECUTOR), _update_drain(state)
    idle = RolloutStep(cancel_drain=drain.executor if drain else None)
    if workload is None or not workload.replicas:
        return idle
    if not workload.revision and not is_pending:
        # The StatefulSet was just created and has no status. No pod can have an older template.
        return idle
    surge = _surge(state, workload)
    if is_pending:
        return replace(
            idle,
            partition=workload.replicas,
            surge=surge,
            is_active=True,
            step="executors:begin",
        )
    pods = [pod for pod in state.pods if pod.component == EXECUTOR]
    outdated = [pod for pod in pods if pod.revision != workload.revision and not pod.is_terminating]
    # A new template is written with a partition. Without one, the observed revision still holds.
    if not workload.is_observed and workload.partition:
        return RolloutStep(
            partition=workload.partition,
            surge=surge,
            drain=drain,
            is_active=True,
            step="executors:begin",
            message="waiting for Kubernetes to observe the executors' new template",
        )
    if not outdated:
        return idle
    return _replacing(state, workload, pods, outdated, drain)


def _replacing(
    state: ClusterState,
    workload: WorkloadView,
    pods: Sequence[PodView],
    outdated: Sequence[PodView],
    drain: ExecutorDrain | None,
) -> RolloutStep:
    base = RolloutStep(
        partition=workload.partition, drain=drain, is_active=True, surge=_surge(state, workload)
    )
    broken = _broken_tail(outdated)
    if broken:
        # They serve nobody, so they are replaced at once.
        return replace(
            base,
            partition=min(workload.partition, broken[-1].ordinal),
            pods_to_delete=tuple(broken),
            drain=None,
            cancel_drain=drain.executor if drain else None,
            step=f"executors:{broken[-1].name}",
            message=f"replacing {broken[-1].name}, which is failing",
        )
    updated = [pod for pod in pods if pod.revision == workload.revision]
    coming = [pod for pod in updated if not pod.is_ready and not _waits(state, pod)]
    if coming or len(pods) < workload.replicas or any(pod.is_terminating for pod in pods):
        problem = next((pod.problem for pod in coming if pod.problem), None)
        name = coming[0].name if coming else "an executor"
        message = f"waiting for {name} to become ready"
        return replace(base, step=f"executors:{name}", message=message, problem=problem)
    last = max(outdated, key=lambda pod: pod.ordinal)
    if last.ordinal >= workload.partition:
        step = f"executors:{last.name}:stop"
        # A StatefulSet waits for any pod that is not ready. This one has drained, so it need not.
        progress = state.progress
        has_waited = step == progress.step and state.now - progress.since >= _PATIENCE_S
        return replace(
            base,
            pods_to_delete=(last,) if has_waited or not last.is_ready else (),
            drain=None,
            step=step,
            message=f"waiting for {last.name} to be replaced",
        )
    return _draining(state, base, last)


def _draining(state: ClusterState, base: RolloutStep, last: PodView) -> RolloutStep:
    drain, base = base.drain, replace(base, step=f"executors:{last.name}")
    if drain is not None and drain.executor != last.name:
        return replace(base, drain=None, cancel_drain=drain.executor)
    if not _serves(state, SCHEDULER):
        message = f"no scheduler is ready, so {last.name} has no work to drain"
        return replace(base, partition=last.ordinal, drain=None, message=message)
    if drain is None and not state.is_capable:
        message = f"waiting for more ready executors before draining {last.name}"
        return replace(base, message=message)
    if state.refusal:
        message = (
            f"replacing {last.name} by the readiness of pods, because the schedulers refuse the "
            "operator"
        )
        return replace(base, partition=last.ordinal, drain=None, message=message)
    if drain is not None:
        timeout_s = state.spec.executor.drain_timeout_seconds
        if reason := draining.release_reason(drain, state.executors, state.now, timeout_s):
            return replace(base, partition=last.ordinal, drain=None, message=reason)
    return replace(
        base,
        drain=drain or ExecutorDrain(last.name, state.now, "update"),
        start_drain=last.name,
        message=f"draining {last.name}",
    )


def _paused(state: ClusterState, executors: RolloutStep) -> RolloutStep:
    """Leave the executors unchanged until the schedulers are replaced."""
    drain = _update_drain(state)
    return RolloutStep(
        partition=state.workloads[EXECUTOR].partition,
        surge=executors.surge,
        cancel_drain=drain.executor if drain else None,
        is_active=True,
        step="executors:after the schedulers",
        message="waiting for the schedulers before replacing the remaining executors",
    )


def _with_progress(
    state: ClusterState, rollout: RolloutStep, pending: Collection[str]
) -> RolloutStep:
    """Add what the rollout is waiting for, since when, and whether the deadline has passed."""
    step, message, problem = rollout.step, rollout.message, rollout.problem
    is_active, progress = rollout.is_active or bool(pending), state.progress
    for component in (SCHEDULER, STATE, HEAD):
        workload = state.workloads.get(component)
        if workload is None or component in rollout.hold or problem:
            continue
        current = f"{component}:{state.templates.get(component, '')}"
        is_mixed = workload.updated < workload.present
        # A replacement that has begun lasts until all pods are ready.
        has_begun = progress.step == current and not workload.is_complete
        if component in pending or is_mixed or has_begun:
            is_active = True
            step, message = current, f"replacing the {component}"
            problem = _problem_of(state, component)
    if not is_active and (not progress.step or _is_settled(state)):
        return rollout
    if not step:
        # The held components wait for pods that are updated already, but missing or not ready.
        late = next((c for c in (SCHEDULER, EXECUTOR, STATE) if not _is_complete(state, c)), HEAD)
        step, message = f"{late}:ready", f"waiting for the {late} to become ready"
    since = progress.since if step == progress.step else state.now
    deadline_s = state.spec.update_strategy.progress_deadline_seconds
    if problem is None and state.now - since >= deadline_s:
        problem = WorkloadProblem(
            "ProgressDeadlineExceeded", f"{message or step}: not done within {deadline_s:g} s"
        )
    return replace(
        rollout, is_active=True, step=step, since=since, message=message, problem=problem
    )


def _update_drain(state: ClusterState) -> ExecutorDrain | None:
    drain = state.progress.drain
    return drain if drain and drain.purpose == "update" else None


def _problem_of(state: ClusterState, component: str) -> WorkloadProblem | None:
    pods = [pod for pod in state.pods if pod.component == component and not pod.is_ready]
    coming = [pod for pod in pods if not pod.is_terminating]
    of_pods = (pod.problem for pod in coming if pod.problem)
    problem = next(of_pods, state.workloads[component].problem)
    if problem and problem.reason in WAITING_FOR_ROOM:
        # Schedulers are replaced all at once where there is room, otherwise one after another.
        is_moving = len(coming) < len(pods) or any(pod.problem is None for pod in coming)
        return None if is_moving else problem
    return problem


def _has_canary(state: ClusterState, executors: RolloutStep) -> bool:
    """Return whether an executor with the new template works, or none is needed."""
    workload = state.workloads.get(EXECUTOR)
    if workload is None or not workload.replicas or not executors.is_active:
        return True
    if state.is_outdated(EXECUTOR) or not workload.is_observed:
        return False
    return any(
        pod.component == EXECUTOR
        and pod.revision == workload.revision
        and (pod.is_ready or _waits(state, pod))
        for pod in state.pods
    )


def _waits(state: ClusterState, pod: PodView) -> bool:
    """Return whether an executor runs, but waits for schedulers of its own protocol version."""
    if state.refusal:
        return pod.is_started and pod.problem is None
    return any(each.id == pod.name and each.is_refused for each in state.executors or ())


def _stuck(state: ClusterState, pending: Collection[str]) -> list[PodView]:
    """Return outdated pods of head and state that are not ready and may block a StatefulSet."""
    settled = {
        component: workload
        for component, workload in state.workloads.items()
        if component in (HEAD, STATE) and component not in pending and workload.is_observed
    }
    return [
        pod
        for pod in state.pods
        if pod.component in settled
        and pod.revision != settled[pod.component].revision
        and not pod.is_ready
        and not pod.is_terminating
    ]


def _broken_tail(outdated: Sequence[PodView]) -> list[PodView]:
    """Return the failing pods with the highest ordinals, down to the first that works."""
    broken: list[PodView] = []
    for pod in sorted(outdated, key=lambda pod: -pod.ordinal):
        if pod.is_ready or pod.problem is None:
            break
        broken.append(pod)
    return broken


def _serves(state: ClusterState, component: str) -> bool:
    """Return whether any pod is ready. A component without one can be replaced at once."""
    workload = state.workloads.get(component)
    return workload is not None and workload.ready > 0


def _is_settled(state: ClusterState) -> bool:
    """Return whether the pods that were replaced last are ready, too."""
    return all(workload.is_complete for workload in state.workloads.values())


def _is_complete(state: ClusterState, component: str) -> bool:
    workload = state.workloads.get(component)
    return workload is None or workload.is_complete


def _surge(state: ClusterState, workload: WorkloadView) -> int:
    """Return 1 if a second executor must run while the only one is replaced."""
    works = workload.replicas > 1 or workload.ready > 0
    return int(state.desired_executors == 1 and state.can_surge and works)
