"""The counters of the driver, each under its own label."""

from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies


def test_counts_are_by_executor_and_kind() -> None:
    tallies = DispatchTallies()
    for name in ("e1", "e2", "e1"):
        tallies.assigned(ExecutorId(name))
    tallies.stage_ended("slots", 5)
    tallies.stage_ended("single", 7)
    tallies.planned(3)
    assert tallies.assignments == {("e1",): 2, ("e2",): 1}
    assert tallies.stage_durations.sums_ms == {("slots",): 5, ("single",): 7}
    assert tallies.planning_durations.sums_ms == {(): 3}


def test_two_schedulers_of_one_process_count_apart() -> None:
    one, two = DispatchTallies(), DispatchTallies()
    one.assigned(ExecutorId("e1"))
    assert not two.assignments and two.queue_depth == 0
