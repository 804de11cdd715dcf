"""Scales executors down: one at a time, highest ordinal first, each drained before it stops.

The drain is stored in the cluster's status, so a new operator process continues it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from caraway_kube.naming import EXECUTOR
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.progress import ExecutorDrain


@dataclass(frozen=True, slots=True)
class DrainStep:
    """The next step: the replicas to write, and which drain to start or to cancel."""

    replicas: int
    drain: ExecutorDrain | None = None
    """The drain to store."""
    start_drain: str | None = None
    cancel_drain: str | None = None
    reason: str = ""
    is_waiting: bool = False


def next_drain_step(state: ClusterState) -> DrainStep:
    """Return the next step towards the desired number of executors."""
    workload, desired = state.workloads[EXECUTOR], state.desired_executors
    drain = state.progress.drain
    if drain is not None and drain.purpose != "scale":
        drain = None
    if desired >= workload.replicas:
        return DrainStep(desired, cancel_drain=drain.executor if drain else None)
    if not state.has_schedulers:
        return DrainStep(desired, reason="no scheduler is running, so executors have no work")
    last = f"{workload.name}-{workload.replicas - 1}"
    if drain is not None and drain.executor != last:
        return DrainStep(workload.replicas, cancel_drain=drain.executor, is_waiting=True)
    if workload.present > workload.replicas:
        reason = f"waiting for the pods after {last} to stop"
        return DrainStep(workload.replicas, drain, reason=reason, is_waiting=True)
    if drain is not None:
        timeout_s = state.spec.executor.drain_timeout_seconds
        if reason := release_reason(drain, state.executors, state.now, timeout_s):
            fewer = workload.replicas - 1
            return DrainStep(fewer, reason=reason, is_waiting=desired < fewer)
    # Sent again in every step: an executor that restarts forgets that it was draining.
    return DrainStep(
        workload.replicas,
        drain or ExecutorDrain(last, state.now),
        start_drain=last,
        reason=f"draining {last}",
        is_waiting=True,
    )


def release_reason(
    drain: ExecutorDrain, executors: Collection[ExecutorView] | None, now: float, timeout_s: float
) -> str:
    """Return why a draining executor may stop now, or '' if it may not."""
    if now - drain.since >= timeout_s:
        return f"{drain.executor} did not drain within {timeout_s:g} s and is stopped"
    if executors is None:
        return ""
    view = next((each for each in executors if each.id == drain.executor), None)
    if view is None or not (view.is_ready or view.is_draining):
        return f"{drain.executor} is not in use"
    return f"{drain.executor} has drained" if view.is_drained else ""
