from collections.abc import Collection
from dataclasses import replace

from caraway_kube.naming import EXECUTOR, SCHEDULER
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.scaling.draining import DrainStep, next_drain_step
from caraway_operator.scheduler_client import ExecutorView
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.pods import WorkloadView
from caraway_operator.states.progress import ExecutorDrain, ReconcileProgress


def state(
    desired: int = 2,
    replicas: int = 3,
    present: int = 3,
    schedulers: int = 1,
    drain: ExecutorDrain | None = None,
    executors: Collection[ExecutorView] | None = (),
) -> ClusterState:
    """Return a cluster that by default scales down by one executor."""
    return ClusterState(
        now=1000.0,
        spec=CarawayClusterSpec(),
        workloads={
            EXECUTOR: WorkloadView("shop-executor", replicas, present, 0, 0, True, "t"),
            SCHEDULER: WorkloadView("shop-scheduler", 1, schedulers, 1, 1, True, "t"),
        },
        pods=(),
        templates={},
        desired_replicas={EXECUTOR: desired},
        progress=ReconcileProgress(drain=drain),
        executors=executors,
    )


DRAIN = ExecutorDrain("shop-executor-2", 950.0)
BUSY = ExecutorView("shop-executor-2", is_ready=False, is_draining=True, running=1)
DONE = ExecutorView("shop-executor-2", is_ready=False, is_draining=True, is_drained=True)


def test_the_desired_number_is_kept() -> None:
    assert next_drain_step(state(desired=3)) == DrainStep(3)


def test_executors_are_added_at_once() -> None:
    assert next_drain_step(state(desired=9)) == DrainStep(9)


def test_the_highest_ordinal_drains_first() -> None:
    step = next_drain_step(state())

    assert (step.replicas, step.start_drain) == (3, "shop-executor-2")
    assert step.drain == ExecutorDrain("shop-executor-2", 1000.0)
    assert step.is_waiting


def test_an_executor_with_running_work_is_kept() -> None:
    step = next_drain_step(state(drain=DRAIN, executors=(BUSY,)))

    assert (step.replicas, step.drain, step.is_waiting) == (3, DRAIN, True)


def test_a_drained_executor_is_removed() -> None:
    step = next_drain_step(state(desired=0, drain=DRAIN, executors=(DONE,)))

    assert (step.replicas, step.drain, step.is_waiting) == (2, None, True)


def test_an_executor_that_no_scheduler_knows_is_removed_at_once() -> None:
    assert next_drain_step(state(drain=DRAIN, executors=())).replicas == 2


def test_a_broken_executor_is_removed_at_once() -> None:
    broken = ExecutorView("shop-executor-2", is_ready=False)

    assert next_drain_step(state(drain=DRAIN, executors=(broken,))).replicas == 2


def test_no_executor_is_removed_while_no_scheduler_answers() -> None:
    assert next_drain_step(state(drain=DRAIN, executors=None)).replicas == 3


def test_a_drain_times_out_with_and_without_schedulers() -> None:
    for executors in (None, (BUSY,)):
        step = next_drain_step(state(drain=replace(DRAIN, since=800.0), executors=executors))
        assert (step.replicas, step.drain) == (2, None)
        assert "did not drain within 120 s" in step.reason


def test_the_next_drain_waits_until_the_last_pod_has_stopped() -> None:
    step = next_drain_step(state(desired=1, replicas=2, present=3))

    assert (step.replicas, step.start_drain, step.is_waiting) == (2, None, True)


def test_a_drain_is_cancelled_when_the_desired_number_rises() -> None:
    step = next_drain_step(state(desired=3, drain=DRAIN, executors=(BUSY,)))

    assert step == DrainStep(3, cancel_drain="shop-executor-2")


def test_a_drain_of_another_executor_is_cancelled_first() -> None:
    step = next_drain_step(state(drain=ExecutorDrain("shop-executor-5", 900.0)))

    assert (step.replicas, step.cancel_drain, step.start_drain) == (3, "shop-executor-5", None)


def test_a_drain_of_a_rollout_is_not_cancelled() -> None:
    updating = ExecutorDrain("shop-executor-2", 900.0, "update")

    assert next_drain_step(state(desired=3, drain=updating)).cancel_drain is None


def test_without_schedulers_all_executors_are_removed_at_once() -> None:
    assert next_drain_step(state(desired=0, schedulers=0)).replicas == 0
