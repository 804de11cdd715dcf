"""Metrics of the cluster from this scheduler's view, with the names of the emulated runtime."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import Metric

from caraway_core.process.durations import Labels
from caraway_core.protocols.dispatch import ExecutorState, ExecutorStatus
from caraway_gateway.services import Services
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_STATES: Mapping[ExecutorState, int] = {
    "registered": 0, "ready": 1, "draining": 2, "lost": 3, "refused": 4,
}  # fmt: skip


def _ended(services: Services) -> Mapping[Labels, int]:
    found: dict[Labels, int] = {}
    for executor in services.dispatch.executors():
        found[executor.executor_id, "finished"] = executor.finished_tasks
        found[executor.executor_id, "failed"] = executor.failed_tasks
    return found


_CLUSTER: Table[Services] = (
    gauge("scheduler_active_executors_count", "Executors that are ready.",
          "", lambda of: sum(each.is_ready for each in of.dispatch.executors())),
    gauge("scheduler_count", "Schedulers that are registered.",
          "", lambda of: of.scheduler_count()),
    gauge("scheduler_task_queue_depth", "Tasks that wait for an executor.",
          "", lambda of: of.dispatch_tallies.queue_depth),
    histogram("scheduler_stage_duration_ms", "Duration of stages, in milliseconds.",
              "kind", lambda of: of.dispatch_tallies.stage_durations),
    histogram("scheduler_planning_duration_ms",
              "Time to plan distributed statements, in milliseconds.",
              "", lambda of: of.dispatch_tallies.planning_durations),
    counter("scheduler_executor_assignments", "Tasks assigned to executors.",
            "executor", lambda of: of.dispatch_tallies.assignments),
)  # fmt: skip
_EXECUTORS: Table[ExecutorStatus] = (
    gauge("node_status", "0 registered, 1 ready, 2 draining, 3 lost, 4 refused.",
          "executor", lambda of: _STATES[of.state]),
)  # fmt: skip
_TASKS: Table[Services] = (counter("node_tasks", "Tasks that ended.", "executor outcome", _ended),)


def collect(services: Services, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    yield from families.families_of(_CLUSTER, services)
    executors = {each.executor_id: each for each in services.dispatch.executors()}
    yield from families.of_each(_EXECUTORS, executors)
    yield from families.families_of(_TASKS, services)
