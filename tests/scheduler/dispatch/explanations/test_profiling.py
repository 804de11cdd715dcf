"""How the profile of a distributed statement is added up and shown."""

import json
from dataclasses import replace

import pytest

from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.profiles import OperatorProfile, TaskProfile
from caraway_scheduler.dispatch.explanations import profiling
from caraway_scheduler.dispatch.tasks.reports import FinishedTask

MS = 1_000_000
OPERATORS = (
    OperatorProfile("SortExec: expr=[a]", 0, {"elapsed_compute": 2 * MS, "spilled_bytes": 70}),
    OperatorProfile("AggregateExec: mode=Final", 1, {"elapsed_compute": 3 * MS}),
    OperatorProfile(
        "HashJoinExec: mode=Partitioned",
        2,
        {"build_time": 4 * MS, "join_time": 5 * MS, "elapsed_compute": 9 * MS, "spilled_bytes": 7},
    ),
    OperatorProfile("RepartitionExec: Hash", 3, {"repartition_time": 1 * MS, "fetch_time": 99}),
    OperatorProfile("CoolExec", 4, {"elapsed_compute": 6 * MS}),
    OperatorProfile(
        "DataSourceExec: file_groups",
        5,
        {"time_elapsed_opening": 1 * MS, "time_elapsed_processing": 7 * MS, "bytes_scanned": 12},
    ),
)
PROFILE = TaskProfile(1.5, 2.5, 30.0, 20.0, OPERATORS)
TASK = FinishedTask(
    QueryId("q"), "s1", "scan", 1, ExecutorId("e1"), 10, 80, 32.5, 5 * MS, PROFILE, 40.0, 64
)


def test_work_of_threads_is_told_by_what_it_was_for() -> None:
    assert profiling.busy_ms(PROFILE) == {
        "building": 4.0, "grouping": 3.0, "other": 6.0, "partitioning": 1.0, "probing": 5.0,
        "reading": 8.0, "sorting": 2.0,
    }  # fmt: skip
    assert profiling.spilled_bytes(PROFILE) == 77


@pytest.mark.parametrize(("called_ms", "expected"), [(40.0, 6.0), (33.0, 0.0), (0.0, 0.0)])
def test_moving_is_what_the_executor_does_not_know_of(called_ms: float, expected: float) -> None:
    assert profiling.moving_ms(replace(TASK, called_ms=called_ms)) == expected
    assert profiling.moving_ms(replace(TASK, profile=None)) == 0


def test_a_task_is_told_in_one_line() -> None:
    assert profiling.line(TASK) == (
        "moving 6.0 ms, waiting for a slot 1.5 ms, planning 2.5 ms, engine 20.0 ms, "
        "packing 10.0 ms; threads: building 4.0, grouping 3.0, other 6.0, partitioning 1.0, "
        "probing 5.0, reading 8.0, sorting 2.0 ms; 64 bytes from other executors; 77 bytes spilled"
    )
    assert profiling.line(replace(TASK, profile=None)) == ""


@pytest.mark.parametrize(("times", "expected"), [((), 1), ((0, 0), 1), ((1, 1, 4), 2), ((3,), 1)])
def test_skew_is_the_longest_task_by_the_mean(times: tuple[float, ...], expected: float) -> None:
    assert profiling.skew([replace(TASK, elapsed_ms=each) for each in times]) == expected


def test_the_document_has_all_tasks_in_order() -> None:
    here = replace(TASK, stage="answer", number=0, executor_id=None, profile=None)
    tasks = [TASK, replace(TASK, number=0, elapsed_ms=97.5), here]
    found = json.loads(profiling.document(tasks, 123.4567))
    assert found["elapsed_ms"] == 123.457
    first, last = found["stages"]
    assert (first["name"], first["note"], first["skew"]) == ("s1", "scan", 1.5)
    assert [each["number"] for each in first["tasks"]] == [0, 1]
    assert first["tasks"][1] == {
        "number": 1, "executor": "e1", "rows": 10, "bytes": 80, "ended_at_ms": 5,
        "received_bytes": 64, "spilled_bytes": 77, "moving_ms": 6.0, "waited_ms": 1.5,
        "planning_ms": 2.5, "engine_ms": 20.0, "packing_ms": 10.0,
        "threads_ms": profiling.busy_ms(PROFILE),
        "operators": [
            {"operator": each.text, "depth": each.depth, "metrics": each.metrics}
            for each in OPERATORS
        ],
    }  # fmt: skip
    assert last["tasks"][0]["executor"] is None and last["tasks"][0]["elapsed_ms"] == 32.5
