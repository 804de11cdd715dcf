import asyncio
import io
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, ShuttingDownError
from caraway_core.ids import new_query_id
from caraway_core.process import cores, logs
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.embedding import CatalogEmbedding
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.execution.streams import EngineStream
from caraway_engine.searching import embedding
from caraway_engine.sessions import short_results
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import ChunksAwayError
from caraway_executor.statements.local import LocalExecutor
from tests.kit.engine import memory, snapshot


async def rows(stream: BatchStream) -> list[object]:
    return [row for batch in [b async for b in stream] for row in batch.to_pylist()]


def executor() -> LocalExecutor:
    return LocalExecutor(EngineSettings(2))


async def test_nothing_runs_before_a_catalog_is_there() -> None:
    with pytest.raises(ShuttingDownError):
        await executor().execute(new_query_id(), Statement("SELECT 1", {}))


async def test_statement_keeps_the_snapshot_it_began_with() -> None:
    local = executor()
    local.install(snapshot({"t": memory(a=list(range(50_000)))}))
    before = await local.execute(new_query_id(), Statement("SELECT count(*) AS n FROM t", {}))
    local.install(snapshot({"t": memory(a=[1])}, version=2))
    after = await local.execute(new_query_id(), Statement("SELECT count(*) AS n FROM t", {}))
    assert await rows(before) == [{"n": 50_000}]
    assert await rows(after) == [{"n": 1}]


async def test_catalog_can_change_under_constant_load() -> None:
    local = executor()
    one, other = memory(a=[1, 1]), memory(a=[2, 2])
    local.install(snapshot({"t": one, "u": one}))
    stop = asyncio.Event()

    async def ask() -> int:
        asked = 0
        while not stop.is_set():
            sql = "SELECT DISTINCT t.a AS x, u.a AS y FROM t CROSS JOIN u"
            answer = await rows(await local.execute(new_query_id(), Statement(sql, {})))
            # Both tables change together, so a statement never sees one of each.
            assert answer in ([{"x": 1, "y": 1}], [{"x": 2, "y": 2}])
            asked += 1
        return asked

    asking = [asyncio.create_task(ask()) for _ in range(4)]
    for version in range(2, 40):
        table = other if version % 2 else one
        await asyncio.to_thread(local.install, snapshot({"t": table, "u": table}, version=version))
    stop.set()
    assert sum(await asyncio.gather(*asking)) > 4


async def test_table_that_fails_is_named_and_the_rest_works() -> None:
    local = executor()
    failed = local.install(snapshot({"good": memory(a=[1]), "bad": "SELECT * FROM nowhere"}))
    assert list(failed) == ["bad"]
    stream = await local.execute(new_query_id(), Statement("SELECT a FROM good", {}))
    assert await rows(stream) == [{"a": 1}]


class CountedThreads(ThreadPoolExecutor):
    """A thread pool that counts the work that it gets."""

    submitted = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(*args, **kwargs)


@pytest.mark.parametrize("may_block", [False, True])
async def test_instant_statements_need_no_thread_where_the_loop_may_block(
    may_block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_results, "_MOST_S", 60.0)
    monkeypatch.setattr(short_results, "_INSTANT_S", 60.0)
    statement = Statement("SELECT 1 AS one", {})
    with CountedThreads(2) as threads:
        local = LocalExecutor(EngineSettings(2), planning=threads, may_block=may_block)
        local.install(snapshot({}))
        counts = []
        for is_away in (False, False, False, True):
            if is_away:
                # Its rows have to be loaded first, which the loop must not wait for.
                assert local.session is not None
                monkeypatch.setattr(local.session, "start", once_away(local.session.start))
            before = threads.submitted
            assert await rows(await local.execute(new_query_id(), statement)) == [{"one": 1}]
            counts.append(threads.submitted - before)
        assert counts == ([1, 1, 0, 1] if may_block else [1, 1, 1, 2])


class LoopVectors:
    """A model whose vectors come through the event loop, as they do in an engine process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.asked = asyncio.Semaphore(0)
        self.may_answer = asyncio.Event()

    def vectors(self, name: str, texts: Sequence[str], mark: str = "") -> pa.Array:
        answer = asyncio.run_coroutine_threadsafe(self._answer(len(texts)), self._loop)
        return answer.result()

    async def _answer(self, count: int) -> pa.Array:
        self.asked.release()
        await self.may_answer.wait()
        return pa.array([[1.0]] * count, pa.list_(pa.float32(), 1))


@pytest.mark.parametrize("asked", ["probe", "statement"])
async def test_the_loop_waits_for_no_thread_that_waits_for_the_loop(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_results, "_MOST_S", 60.0)
    monkeypatch.setattr(short_results, "_INSTANT_S", 60.0)
    model = LoopVectors(asyncio.get_running_loop())
    local = LocalExecutor(EngineSettings(2), may_block=True)
    models = CatalogEmbedding(vectors=model)
    local.install(replace(snapshot({"t": memory(a=["x"])}), embedding=models))
    for _ in range(3):
        assert await rows(await local.execute(new_query_id(), Statement("SELECT 1 AS one", {})))
    # Enough statements of two partitions to occupy all threads of the engine.
    sql = f"SELECT {embedding.EMBED}(a, 'm') AS v FROM t"
    sql = f"{sql} UNION ALL {sql}"
    streams = [
        await local.execute(new_query_id(), Statement(sql, {}))
        for _ in range(2 * cores.available())
    ]
    reading = [asyncio.create_task(rows(each)) for each in streams]
    for _ in range(cores.available()):
        await model.asked.acquire()
    statement = Statement("SELECT 1 AS one", {})
    work = local.probe() if asked == "probe" else local.execute(new_query_id(), statement)
    waiting: asyncio.Task[object] = asyncio.create_task(work)
    # Only a loop that goes on comes here.
    await asyncio.wait((waiting,), timeout=0.1)
    model.may_answer.set()
    assert await asyncio.gather(*reading) == [[{"v": [1.0]}] * 2] * len(streams)
    await waiting
    local.close()


def once_away(start: Callable[[Statement], EngineStream]) -> Callable[[Statement], EngineStream]:
    """Return a start of statements that finds rows away the first time."""
    errors = [ChunksAwayError([])]

    def started(statement: Statement) -> EngineStream:
        if errors:
            raise errors.pop()
        return start(statement)

    return started


async def _broken(_stream: EngineStream) -> Any:
    raise RuntimeError("Internal error: a batch has no columns")


async def test_failure_of_the_engine_is_logged_with_its_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    engine = logging.getLogger("caraway_engine")
    engine.addHandler(handler)
    try:
        local = executor()
        local.install(snapshot({"t": memory(a=[1])}))
        query_id = new_query_id()
        statement = Statement("SELECT sum(a) FROM t", {}, trace_id="f" * 32)
        stream = await local.execute(query_id, statement)
        monkeypatch.setattr(EngineStream, "_next", _broken)
        with pytest.raises(ExecutionError, match="the engine failed"):
            # Another task reads the stream, which knows nothing of the statement.
            await asyncio.create_task(rows(stream))
    finally:
        engine.removeHandler(handler)
    (event,) = map(json.loads, written.getvalue().splitlines())
    assert (event["query_id"], event["trace_id"]) == (query_id, "f" * 32)
    assert "no columns" in event["cause"]
    assert not logs.query_id.get()


async def test_planning_knows_its_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    start = Session.start

    def noted(of: Session, statement: Statement) -> EngineStream:
        seen.append((logs.query_id.get(), logs.trace_id.get()))
        return start(of, statement)

    monkeypatch.setattr(Session, "start", noted)
    local = executor()
    local.install(snapshot({"t": memory(a=[1])}))
    query_id = new_query_id()
    await rows(await local.execute(query_id, Statement("SELECT a FROM t", {}, trace_id="e" * 32)))
    assert seen == [(query_id, "e" * 32)]
