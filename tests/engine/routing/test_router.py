"""Routing of statements on a cluster, decided over real sessions and without any executor."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from caraway_core.errors import CatalogMovedError, InvalidQueryError, PlanLostError
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.statements import Statement
from caraway_core.tables import Keys, TableSpec
from caraway_engine.routing import (
    Described,
    Explained,
    Here,
    LookedUp,
    NoneReady,
    PlanId,
    Question,
    Staged,
    Whole,
    Workers,
)
from caraway_engine.routing.router import Router
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages import Measured, Policy
from tests.kit.engine import memory, session
from tests.kit.stored import parted, stored
from tests.kit.tables import parquet

_Result = TypeVar("_Result")
EAGER = Policy(small_table_bytes=0, broadcast_bytes=0, gather_bytes=0, partition_bytes=1 << 20)
E1, E2 = ExecutorId("e1"), ExecutorId("e2")
WORKERS = Workers((E1, E2), 1 << 30, EAGER)
PLAN = PlanId("p")
JOIN = "SELECT g, count(*) AS n FROM facts a JOIN more b ON a.k = b.k GROUP BY g"
ROWS = pa.table({"id": range(100), "v": range(100)})


class Threads:
    """Runs work in threads, and counts it."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, work: Callable[[], _Result], /) -> _Result:
        self.count += 1
        return await asyncio.to_thread(work)


class Routed:
    """A router over one catalog."""

    def __init__(self, tables: dict[str, TableSpec]) -> None:
        self.session = session(tables, {"executors": lambda _viewer: ROWS})
        self.threads = Threads()
        self.router = Router(self._over, self.threads)

    async def _over(self, version: CatalogVersion) -> Session:
        if version != 1:
            raise CatalogMovedError(version)
        return self.session

    def decide(
        self, sql: str, workers: Workers = WORKERS, **others: Any
    ) -> Coroutine[Any, Any, Any]:
        version, logs = CatalogVersion(1), others.pop("logs", {})
        statement = Statement(sql, {}, catalog_version=version, logs=logs)
        return self.router.decide(Question(PLAN, statement, workers, **others))


@pytest.fixture
def routed(tmp_path: Path) -> Routed:
    facts = pa.table({"k": range(300), "v": range(300)})
    more = pa.table({"k": range(90), "g": [n % 11 for n in range(90)]})
    keyed = asyncio.run(parted(tmp_path / "c", ROWS, "bucket(8, id)", keys=Keys(("id",))))
    return Routed(
        {
            "facts": parquet(tmp_path / "facts", facts, 4),
            "more": parquet(tmp_path / "more", more, 3),
            "kept": memory(a=[1, 2]),
            "keyed": keyed,
        }
    )


async def test_what_reads_no_table_of_the_catalog_runs_here(routed: Routed) -> None:
    for sql in ("SELECT 1", "SELECT id FROM runtime.executors", "DESCRIBE facts"):
        assert isinstance(await routed.decide(sql), Here)


async def test_what_reads_rows_in_memory_runs_at_their_owner(routed: Routed) -> None:
    found = await routed.decide("SELECT a FROM kept JOIN facts ON a = k")
    assert isinstance(found, Whole) and found.is_at_owner
    assert found.tables == {"kept", "facts"}


async def test_what_is_small_runs_whole_and_is_answered_without_a_thread_again(
    routed: Routed,
) -> None:
    small = Workers((E1, E2), 1 << 30, Policy())
    first = await routed.decide(JOIN, small)
    assert first == Whole(frozenset({TableName("facts"), TableName("more")}), None, None)
    planned = routed.threads.count
    assert await routed.decide(JOIN, small) == first
    assert routed.threads.count == planned and not len(routed.router)


async def test_without_an_executor_only_what_needs_none_is_decided(routed: Routed) -> None:
    nobody = Workers((), 1 << 30, EAGER)
    assert isinstance(await routed.decide(JOIN, nobody), NoneReady)
    assert isinstance(await routed.decide("SELECT id FROM keyed WHERE id = 7", nobody), NoneReady)
    assert isinstance(await routed.decide(f"EXPLAIN {JOIN}", nobody), Explained)
    assert isinstance(await routed.decide("SELECT 1", nobody), Here)


async def test_stages_come_with_their_shares_and_go_on_by_name(routed: Routed) -> None:
    found = await routed.decide(JOIN)
    assert isinstance(found, Staged)
    assert found.schema.names == ["g", "n"] and found.reads_only_catalog
    assert {table: len(each) for table, each in found.shares.items()} == {"facts": 2, "more": 2}
    graph, count = found.graph, 0
    while graph.root is None:
        measured = {name: Measured(100, 1000) for name in graph.stages}
        graph, count = await routed.router.advance(PLAN, measured), count + 1
    assert count and graph.stages.keys() >= found.graph.stages.keys()
    described = await routed.router.describe(PLAN)
    assert described.graph == graph
    assert described.fragments.keys() == {*graph.stages, "answer"}
    routed.router.forget(PLAN)
    assert not len(routed.router)
    with pytest.raises(PlanLostError):
        await routed.router.advance(PLAN, {})


async def test_stages_that_are_not_run_are_described_and_not_held(routed: Routed) -> None:
    found = await routed.decide(f"EXPLAIN {JOIN}")
    assert isinstance(found, Explained) and isinstance(found.way, Described) and not found.is_run
    assert found.way.graph.root is not None
    assert "Aggregate" in found.way.fragments["answer"]
    analysed = await routed.decide(f"EXPLAIN ANALYZE {JOIN}")
    assert isinstance(analysed, Explained) and isinstance(analysed.way, Staged) and analysed.is_run
    assert len(routed.router) == 1


async def test_a_lookup_goes_to_the_owner_of_its_rows(routed: Routed) -> None:
    sql = "SELECT v FROM keyed WHERE id = {}"
    owners = set()
    for number in range(20):
        found = await routed.decide(sql.format(number))
        assert isinstance(found, LookedUp) and found.table == "keyed"
        owners.add(found.owner)
    assert owners == {E1, E2}
    assert routed.threads.count == 1, "all of one shape are learnt with the first"
    small = Workers((E1, E2), 1 << 30, Policy())
    assert await routed.decide(sql.format(1), small) == LookedUp(TableName("keyed"), None)
    assert isinstance(await routed.decide(sql.format(1), may_look_up=False), Staged)


async def test_tables_with_changes_that_nobody_can_tell_apart_are_not_divided(
    tmp_path: Path,
) -> None:
    uncut = await stored(tmp_path / "uncut", ROWS, 4, key="uncut")
    cut = await parted(tmp_path / "cut", ROWS, "bucket(8, id)", key="cut", keys=Keys(("id",)))
    routed, logs = Routed({"uncut": uncut, "cut": cut}), {uncut.key: (), cut.key: ()}
    for sql, way in (("SELECT max(v) FROM uncut", Whole), ("SELECT max(v) FROM cut", Staged)):
        assert isinstance(await routed.decide(sql), Staged)
        assert isinstance(await routed.decide(sql, logs=logs), way)


async def test_a_catalog_that_is_not_here_is_told(routed: Routed) -> None:
    statement = Statement("SELECT 1", {}, catalog_version=CatalogVersion(2))
    with pytest.raises(CatalogMovedError):
        await routed.router.decide(Question(PLAN, statement, WORKERS))


async def test_a_statement_that_fails_leaves_nothing_behind(routed: Routed) -> None:
    with pytest.raises(InvalidQueryError):
        await routed.decide("SELECT nothing FROM facts")
    assert not len(routed.router)


async def test_a_statement_that_is_cancelled_while_planned_leaves_nothing_behind(
    routed: Routed,
) -> None:
    began, may_end, ended = asyncio.Event(), Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(work: Callable[[], _Result]) -> _Result:
        def worked() -> _Result:
            loop.call_soon_threadsafe(began.set)
            assert may_end.wait(60)
            try:
                return work()
            finally:
                loop.call_soon_threadsafe(ended.set)

        return await asyncio.to_thread(worked)

    routed.router._in_thread = slow
    asking = asyncio.ensure_future(routed.decide(JOIN))
    await asyncio.wait_for(began.wait(), 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    may_end.set()
    await asyncio.wait_for(ended.wait(), 60)
    assert not len(routed.router)
