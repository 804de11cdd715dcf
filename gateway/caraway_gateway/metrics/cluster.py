"""Metrics of the cluster from this scheduler's view, with the names of the emulated runtime."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import Metric

from caraway_core.process.durations import Labels
from caraway_core.protocols.dispatch import ExecutorState, ExecutorStatus
from caraway_gateway.services import Services
from caraway_serving.metric_families import Families

_STATES: Mapping[ExecutorState, int] = {
    "registered": 0, "ready": 1, "draining": 2, "lost": 3, "refused": 4,
}  # fmt: skip


def collect(services: Services, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    tallies, executors = services.dispatch_tallies, services.dispatch.executors()
    yield families.gauge(
        "scheduler_active_executors_count",
        "Executors that are ready.",
        sum(executor.is_ready for executor in executors),
    )
    yield families.gauge(
        "scheduler_count", "Schedulers that are registered.", services.scheduler_count()
    )
    yield families.gauge(
        "scheduler_task_queue_depth", "Tasks that wait for an executor.", tallies.queue_depth
    )
    yield families.histogram(
        "scheduler_stage_duration_ms",
        "Duration of stages, in milliseconds.",
        ("kind",),
        tallies.stage_durations,
    )
    yield families.histogram(
        "scheduler_planning_duration_ms",
        "Time to plan distributed statements, in milliseconds.",
        (),
        tallies.planning_durations,
    )
    yield families.counter(
        "scheduler_executor_assignments",
        "Tasks assigned to executors.",
        ("executor",),
        tallies.assignments,
    )
    yield families.gauges(
        "node_status",
        "0 registered, 1 ready, 2 draining, 3 lost, 4 refused.",
        ("executor",),
        {(executor.executor_id,): _STATES[executor.state] for executor in executors},
    )
    yield families.counter(
        "node_tasks", "Tasks that ended.", ("executor", "outcome"), _ended(executors)
    )


def _ended(executors: Iterable[ExecutorStatus]) -> Mapping[Labels, int]:
    found: dict[Labels, int] = {}
    for executor in executors:
        found[executor.executor_id, "finished"] = executor.finished_tasks
        found[executor.executor_id, "failed"] = executor.failed_tasks
    return found
