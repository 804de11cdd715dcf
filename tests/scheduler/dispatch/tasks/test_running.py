"""Stages over a fleet that loses executors: their tasks run, run again, or are given up."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core import errors
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.protocols.fleet import ExchangePart, Input, Share, Task, TaskOutcome, TaskTable
from caraway_engine.stages import ExchangeRead, Measured, ReadMode, Stage, StageGraph
from caraway_engine.stages.graph import Hashed
from caraway_scheduler.dispatch.stages.driving import Drive
from caraway_scheduler.dispatch.tasks import running
from caraway_scheduler.dispatch.tasks.placing import Slots
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS, StageRunner
from caraway_scheduler.dispatch.tasks.staged_query import StagedQuery
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies

SCHEMA = pa.schema({"n": pa.int64()})
E1, E2, E3 = (ExecutorId(f"e{number}") for number in (1, 2, 3))
VERSION = CatalogVersion(1)


def reading(stage: str, mode: ReadMode = ReadMode.ALL) -> ExchangeRead:
    return ExchangeRead(stage, mode, f"in_{stage}", SCHEMA)


SCAN = Stage("s1", b"", SCHEMA, "slots", 3, hashed=Hashed((0,), 2), note="scan")
JOINED = Stage("s2", b"", SCHEMA, "partitions", 2, (reading("s1", ReadMode.PARTITION),))
ROOT = Stage("root", b"", SCHEMA, "single", 1, (reading("s2"),))
FLAT = Stage("s1", b"", SCHEMA, "slots", 3, note="scan")
OWN = Stage("s2", b"", SCHEMA, "slots", 3, (reading("s1", ReadMode.OWN),))


class Fleet:
    """Executors that remember which parts they hold; `fails` has the failures of calls to come."""

    def __init__(self, *executor_ids: ExecutorId) -> None:
        self.ready = list(executor_ids)
        self.fails: list[BaseException | str | None] = []
        self.calls: list[tuple[str, ExecutorId]] = []
        self.lost: list[tuple[ExecutorId, str]] = []
        self.suspected: list[ExecutorId] = []
        self.gone: set[int] = set()
        self.waits_ready = False
        self.parts: dict[int, ExchangePart] = {}
        self.here = 0
        self.names_loser = True
        self.bytes = running.HERE_BYTES

    async def wait_ready(self, count: int, timeout_s: float) -> bool:
        if self.waits_ready:
            self.ready.append(ExecutorId("new"))
        return self.waits_ready

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        await self._called(executor_id, task, inputs)
        rows = _read(inputs) or Counter({f"{executor_id}": 0})
        count = task.split.count if task.split else 1
        number = task.shares[0].table if task.shares else task.stage
        parts = []
        for split in range(count):
            handle = (rows if task.stage != "s1" else Counter({f"{number}": 1}), split)
            part = ExchangePart((handle, len(self.parts)), executor_id, 1, self.bytes)
            self.parts[len(self.parts)] = part
            parts.append(part)
        return TaskOutcome(tuple(parts), 1.0)

    async def stream(self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]) -> Any:
        await self._called(executor_id, task, inputs)
        return _read(inputs)

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        self._check(inputs)
        self.here += 1
        return ()

    def lose(self, executor_id: ExecutorId) -> None:
        self.gone |= {key for key, part in self.parts.items() if part.executor_id == executor_id}

    async def _called(self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]) -> None:
        self.calls.append((task.stage, executor_id))
        failure = self.fails.pop(0) if self.fails else None
        await asyncio.sleep(0)
        if failure == "lost":
            self.lose(executor_id)
            raise errors.ExecutorLostError(executor_id, "it is gone")
        if isinstance(failure, BaseException):
            raise failure
        self._check(inputs)

    def _check(self, inputs: Sequence[Input]) -> None:
        for part in (part for each in inputs for part in each.parts):
            if part.handle[1] in self.gone:
                who = part.executor_id if self.names_loser else None
                raise errors.PartLostError("a part is gone", who)


def _read(inputs: Sequence[Input]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in (part for each in inputs for part in each.parts):
        found.update(part.handle[0][0])
    return found


def runner(fleet: Fleet, *executor_ids: ExecutorId) -> StageRunner:
    async def on_loss(_: QueryId, executor_id: ExecutorId) -> None:
        fleet.suspected.append(executor_id)

    async def here(task: Task, tables: Sequence[TaskTable]) -> Any:
        return "here"

    def shares(table: TableName) -> Sequence[Share]:
        return [Share(TableName(f"{table}{number}"), ()) for number in range(3)]

    def on_lost(executor_id: ExecutorId, cause: str) -> None:
        fleet.lost.append((executor_id, cause))
        if len(fleet.ready) > 1 and executor_id in fleet.ready:
            fleet.ready.remove(executor_id)

    any_fleet: Any = fleet
    query = StagedQuery(QueryId("q"), "here", VERSION, shares)
    slots = Slots(lambda: list(fleet.ready), executor_ids or (E1, E2, E3))
    reports = WorkReports(DispatchTallies(), list[FinishedTask]().append, on_lost, on_loss)
    made = StageRunner(query, any_fleet, slots, reports, here, fleet)
    return made


def scan(stage: Stage = SCAN) -> Stage:
    """Return a stage whose tasks each read a share of their own."""
    return Stage(
        stage.name, b"", SCHEMA, stage.layout, stage.count, stage.readings,
        frozenset({TableName("t")}), stage.hashed, stage.note,
    )  # fmt: skip


async def drive(fleet: Fleet, made: StageRunner, *stages: Stage) -> Any:
    """Run the stages; the last one streams."""
    *before, root = stages
    graph = StageGraph({each.name: each for each in before}, root)

    async def advance(_: object) -> StageGraph:
        return graph

    driving = Drive(advance, graph, made)
    found = await driving.root()
    return await made.stream(found, 0)


async def test_tasks_go_to_their_slots_and_are_counted() -> None:
    fleet = Fleet(E1, E2, E3)
    made = runner(fleet)
    size = await made.run_stage(scan(FLAT))
    assert sorted(fleet.calls) == [("s1", E1), ("s1", E2), ("s1", E3)]
    assert size == Measured(3, 3 * fleet.bytes)
    assert made.tasks_done == 3
    assert sorted(ran.number for ran in made.ran) == [0, 1, 2]
    assert {ran.executor_id for ran in made.ran} == {E1, E2, E3}


async def test_each_partition_reads_one_part_of_every_task() -> None:
    fleet = Fleet(E1, E2, E3)
    rows = await drive(fleet, runner(fleet), scan(), JOINED, ROOT)
    assert rows == Counter({"t0": 2, "t1": 2, "t2": 2}), "both partitions of each of three tasks"


async def test_own_reading_stays_where_the_rows_are() -> None:
    fleet = Fleet(E1, E2, E3)
    await drive(fleet, runner(fleet), scan(FLAT), OWN, ROOT)
    where = {stage: [on for name, on in fleet.calls if name == stage] for stage in ("s1", "s2")}
    assert sorted(where["s1"]) == sorted(where["s2"]) == [E1, E2, E3]


async def test_last_stage_over_few_rows_is_finished_here() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.bytes = 10
    made = runner(fleet)
    assert await drive(fleet, made, scan(), JOINED, ROOT) == "here"
    assert made.is_answered_here and fleet.here == 1
    assert "root" not in {stage for stage, _ in fleet.calls}


async def test_parts_that_are_lost_before_they_are_fetched_are_made_again() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.bytes = 10
    made = runner(fleet)
    for stage in (scan(), JOINED):
        await made.run_stage(stage)
    fleet.bytes = 10**9
    fleet.lose(E1)
    rows = await made.stream(ROOT, 0)
    assert rows == Counter({"t0": 2, "t1": 2, "t2": 2})


@pytest.mark.parametrize("failing", [1, 2, ATTEMPTS - 1])
async def test_lost_executor_is_told_and_its_task_runs_elsewhere(failing: int) -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.fails = ["lost"] * failing
    rows = await drive(fleet, runner(fleet), scan(), JOINED, ROOT)
    assert rows == Counter({"t0": 2, "t1": 2, "t2": 2})
    assert len(fleet.lost) == len(fleet.suspected) == failing


async def test_lost_executor_takes_its_parts_and_only_those_are_made_again() -> None:
    fleet = Fleet(E1, E2, E3)
    made = runner(fleet)
    await made.run_stage(scan(FLAT))
    fleet.calls.clear()
    fleet.fails = ["lost"]
    rows = await made.stream(Stage("root", b"", SCHEMA, "single", 1, (reading("s1"),)), 0)
    assert rows == Counter({"t0": 1, "t1": 1, "t2": 1})
    assert [stage for stage, _ in fleet.calls] == ["root", "s1", "root"]


async def test_loss_that_names_nobody_has_all_inputs_made_again() -> None:
    fleet = Fleet(E1, E2, E3)
    made = runner(fleet)
    await made.run_stage(scan(FLAT))
    fleet.names_loser = False
    fleet.lose(E1)
    fleet.lose(E2)
    fleet.calls.clear()
    root = Stage("root", b"", SCHEMA, "single", 1, (reading("s1"),))
    assert await made.stream(root, 0) == Counter({"t0": 1, "t1": 1, "t2": 1})
    assert Counter(stage for stage, _ in fleet.calls) == {"root": 2, "s1": 3}


async def test_draining_executor_keeps_what_it_made_and_gets_no_more() -> None:
    fleet = Fleet(E1, E2, E3)
    made = runner(fleet)
    await made.run_stage(scan(FLAT))
    fleet.calls.clear()
    fleet.fails = [errors.ShuttingDownError("it drains")]
    root = Stage("root", b"", SCHEMA, "single", 1, (reading("s1"),))
    assert await made.stream(root, 0) == Counter({"t0": 1, "t1": 1, "t2": 1})
    assert [stage for stage, _ in fleet.calls] == ["root", "root"], "nothing is made again"
    assert fleet.calls[0][1] != fleet.calls[1][1]
    assert fleet.lost == [] and fleet.suspected == []


async def test_executor_without_the_catalog_is_passed_over() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.fails = [errors.CatalogMovedError(VERSION)]
    assert await drive(fleet, runner(fleet), scan(), JOINED, ROOT)
    assert fleet.lost == []


async def test_catalog_that_nobody_has_is_planned_anew_by_the_caller() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.fails = [errors.CatalogMovedError(VERSION)] * 99
    with pytest.raises(errors.CatalogMovedError):
        await drive(fleet, runner(fleet), scan(), JOINED, ROOT)


async def test_task_that_is_lost_too_often_fails_the_query_with_its_cause() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.fails = ["lost"] * 99
    with pytest.raises(errors.ExecutionError, match=r"s1 .*it is gone"):
        await runner(fleet).run_stage(Stage("s1", b"", SCHEMA, "single", 1))
    assert len(fleet.calls) == ATTEMPTS


async def test_last_executor_that_is_lost_is_waited_for() -> None:
    fleet = Fleet(E1)
    made = runner(fleet, E1)
    fleet.fails, fleet.waits_ready = ["lost"], True
    fleet.ready.clear()
    assert await made.run_stage(Stage("s1", b"", SCHEMA, "single", 1)) is not None
    assert fleet.calls[-1] == ("s1", "new")


async def test_no_executor_after_the_wait_is_an_overload() -> None:
    fleet = Fleet(E1)
    made = runner(fleet, E1)
    fleet.fails = ["lost"]
    fleet.ready.clear()
    with pytest.raises(errors.OverloadedError):
        await made.run_stage(Stage("s1", b"", SCHEMA, "single", 1))


async def test_failure_of_a_statement_is_not_tried_again() -> None:
    fleet = Fleet(E1, E2, E3)
    fleet.fails = [errors.InvalidQueryError("division by zero")]
    with pytest.raises(errors.InvalidQueryError):
        await runner(fleet).run_stage(Stage("s1", b"", SCHEMA, "single", 1))
    assert len(fleet.calls) == 1


async def test_closing_stops_the_tasks_under_way() -> None:
    fleet = Fleet(E1, E2, E3)
    made = runner(fleet)
    making = asyncio.ensure_future(made.run_stage(scan(FLAT)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    made.close()
    await asyncio.wait((making,))
    assert making.cancelled() and made.tasks_done == 0 and made.ran == []


KINDS = st.sampled_from(["lost", "drain", "part", "moved", None, None, None])


@settings(max_examples=80, derandomize=True)
@given(st.lists(KINDS, max_size=25), st.integers(0, 2**16))
def test_whatever_is_lost_an_answer_has_every_row_once_or_there_is_none(
    kinds: list[str | None], seed: int
) -> None:
    async def work() -> None:
        fleet = Fleet(E1, E2, E3, *(ExecutorId(f"x{number}") for number in range(30)))
        chances = random.Random(seed)
        raised: dict[str | None, Any] = {
            "lost": "lost",
            "drain": errors.ShuttingDownError("it drains"),
            "moved": errors.CatalogMovedError(VERSION),
            "part": errors.PartLostError("a part is gone", chances.choice([None, E1, E2])),
            None: None,
        }
        fleet.fails = [raised[kind] for kind in kinds]
        made = runner(fleet)
        try:
            rows = await drive(fleet, made, scan(), JOINED, ROOT)
        except (errors.ExecutionError, errors.CatalogMovedError):
            assert sum(kind is not None for kind in kinds) >= ATTEMPTS
            return
        finally:
            made.close()
        assert rows == Counter({"t0": 2, "t1": 2, "t2": 2})

    asyncio.run(work())
