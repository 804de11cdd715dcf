"""Answers that executors store: equal to plain answers, whatever is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import AnswerCutError, ExecutionError, ResultTooLargeError
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.protocols.dispatch import StatementProgress
from caraway_core.protocols.fleet import Task
from caraway_core.protocols.storing import answer_schema, in_order, unpack
from caraway_core.statements import Statement
from caraway_core.tables import TableSpec
from caraway_engine.stages import Policy
from caraway_executor.answers.cursors import Cursors
from caraway_executor.tasks import worker
from caraway_scheduler.dispatch.tasks import running
from tests.kit import storing
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.engine import memory
from tests.kit.storing import read_back, read_chunks
from tests.kit.tables import parquet

ROWS = 3000
E1, E2, E3 = map(ExecutorId, ("e1", "e2", "e3"))
MANY = "SELECT v, k, concat('row ', v) AS name FROM facts WHERE v % 2 = 0"
SORTED = "SELECT k, v, g FROM facts JOIN more USING (k) ORDER BY v DESC, g"
GROUPS = "SELECT g, sum(v) AS s, count(*) AS n FROM facts JOIN more USING (k) GROUP BY g"
STATEMENTS = {
    "many tasks": MANY,
    "sorted": SORTED,
    "top": f"{SORTED} LIMIT 7",
    "groups": GROUPS,
    "one group": "SELECT sum(v) AS s, avg(v) AS a FROM facts",
    "views": "SELECT arrow_cast(concat('row ', v), 'Utf8View') AS w, k FROM facts",
    "nothing": "SELECT v, k FROM facts WHERE v < 0",
    "no table": "SELECT 1 AS one",
    "memory": "SELECT a FROM kept ORDER BY a",
    "explained": f"EXPLAIN {GROUPS}",
    "system": "SELECT table_name FROM information_schema.tables ORDER BY table_name",
}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSpec]:
    facts = pa.table({"k": [n % 700 for n in range(ROWS)], "v": list(range(ROWS))})
    more = pa.table({"k": list(range(900)), "g": [n % 11 for n in range(900)]})
    return {
        "facts": parquet(tmp_path / "facts", facts, 4),
        "more": parquet(tmp_path / "more", more, 3),
        "kept": memory(a=[1, 2]),
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def page_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each page contain one chunk record, so that an executor can be lost between them."""
    monkeypatch.setattr(worker, "Cursors", partial(Cursors, page_bytes=1))


@contextlib.asynccontextmanager
async def three(
    folder: Path, tables: dict[str, TableSpec], policy: Policy = EAGER
) -> AsyncIterator[InProcessCluster]:
    async with in_process_cluster(folder, tables, executors=3, policy=policy) as cluster:
        yield cluster


def statement(sql: str, results: Path, **options: Any) -> Statement:
    """Return a statement whose answer is stored in chunks of a hundred rows."""
    order = storing.order(results, first_rows=100, chunk_bytes=800, **options)
    return Statement(sql, {}, store=order, in_background=True)


def rows(table: pa.Table, *, is_ordered: bool) -> list[str]:
    texts = [str(row) for row in table.to_pylist()]
    return texts if is_ordered else sorted(texts)


async def written(cluster: InProcessCluster, insert: Statement) -> None:
    stream = await cluster.dispatch.execute(new_query_id(), insert)
    [batch async for batch in stream]
    assert stream.written == "kept"


def inserting(values: str, results: Path) -> Statement:
    writable = frozenset({TableName("kept")})
    order = storing.order(results, "insert")
    return Statement(f"INSERT INTO kept VALUES {values}", {}, True, writable, order)


@pytest.mark.parametrize("policy", [EAGER, Policy()], ids=["staged", "whole"])
@pytest.mark.parametrize("sql", STATEMENTS.values(), ids=STATEMENTS)
async def test_stored_answers_are_the_plain_ones(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path, sql: str, policy: Policy
) -> None:
    async with three(tmp_path, tables, policy) as cluster:
        plain = await cluster.execute(sql)
        stream = await cluster.dispatch.execute(new_query_id(), statement(sql, results))
        stored = await read_back(results, stream)
        assert stored.schema == plain.schema
        is_ordered = "ORDER BY" in sql
        assert rows(stored, is_ordered=is_ordered) == rows(plain, is_ordered=is_ordered)
        assert cluster.dispatch._staged._under_way == {}


@pytest.mark.usefixtures("page_of_one")
@pytest.mark.parametrize("lost", [(E1,), (E2,), (E1, E3)])
@pytest.mark.parametrize("sql", [MANY, SORTED])
async def test_executors_lost_in_the_middle_leave_each_row_once(
    tmp_path: Path,
    tables: dict[str, TableSpec],
    results: Path,
    sql: str,
    lost: tuple[ExecutorId, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "HERE_BYTES", 0)
    async with three(tmp_path, tables) as cluster:
        plain = await cluster.execute(sql)
        stream = await cluster.dispatch.execute(new_query_id(), statement(sql, results))
        found = list(unpack(await anext(aiter(stream))))
        for each in lost:
            await cluster.fleet.lose(each)
        found += [each async for batch in stream for each in unpack(batch)]
    stored = await read_chunks(results, in_order(found), answer_schema(stream.schema))
    is_ordered = sql == SORTED
    assert rows(stored, is_ordered=is_ordered) == rows(plain, is_ordered=is_ordered)
    if sql == MANY:
        again = {each.task for each in found if each.attempt}
        assert again and again != {each.task for each in found}, "only what was lost is redone"


@pytest.mark.usefixtures("page_of_one")
async def test_whole_statement_that_only_reads_is_run_again_elsewhere(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    async with three(tmp_path, tables, Policy()) as cluster:
        stream = await cluster.dispatch.execute(new_query_id(), statement(SORTED, results))
        found = list(unpack(await anext(aiter(stream))))
        await cluster.fleet.lose(E1)
        found += [each async for batch in stream for each in unpack(batch)]
        plain = await cluster.execute(SORTED)
    assert {each.attempt for each in found} == {0, 1}
    stored = await read_chunks(results, in_order(found), answer_schema(stream.schema))
    assert rows(stored, is_ordered=True) == rows(plain, is_ordered=True)


@pytest.mark.usefixtures("page_of_one")
async def test_statement_that_writes_is_never_run_again(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    async with three(tmp_path, tables) as cluster:
        stream = await cluster.dispatch.execute(new_query_id(), inserting("(3)", results))
        await anext(aiter(stream))
        for each in (E1, E2, E3):
            await cluster.fleet.lose(each)
        with pytest.raises(ExecutionError, match="'kept' may or may not have been written to"):
            await anext(aiter(stream))


@pytest.mark.usefixtures("page_of_one")
async def test_answer_from_memory_is_cut_short_with_its_owner(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    tables["kept"] = memory(a=list(range(ROWS)))
    async with three(tmp_path, tables) as cluster:
        sql = "SELECT a FROM kept"
        stream = await cluster.dispatch.execute(new_query_id(), statement(sql, results))
        await anext(aiter(stream))
        for each in (E1, E2, E3):
            await cluster.fleet.lose(each)
        with pytest.raises(AnswerCutError):
            [batch async for batch in stream]


async def test_rows_are_inserted_once_and_their_count_is_stored(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    async with three(tmp_path, tables) as cluster:
        insert = inserting("(3), (4)", results)
        stream = await cluster.dispatch.execute(new_query_id(), insert)
        assert stream.written == "kept"
        assert (await read_back(results, stream, "insert")).to_pylist() == [{"count": 2}]
        assert (await cluster.execute("SELECT sum(a) AS s FROM kept")).to_pylist() == [{"s": 10}]


async def test_tasks_together_may_not_store_more_than_is_allowed(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    async with three(tmp_path, tables) as cluster:
        stream = await cluster.dispatch.execute(new_query_id(), statement(MANY, results))
        sizes: dict[int, int] = {}
        async for batch in stream:
            for each in unpack(batch):
                sizes[each.task] = sizes.get(each.task, 0) + each.chunk.size_bytes
        assert len(sizes) > 1
        most = max(sizes.values()) + 1
        # Rows are distributed differently each time, so one task alone may exceed it at once.
        with pytest.raises(ResultTooLargeError, match="maximum_size"):
            stream = await cluster.dispatch.execute(
                new_query_id(), statement(MANY, results, most_bytes=most)
            )
            [batch async for batch in stream]

        async def idle() -> bool:
            return all(not each.active_tasks for each in await cluster.fleet.describe())

        assert await eventually(idle, "all work has stopped")


async def test_order_and_background_reach_the_tasks_and_pollute_no_other_query(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    seen: list[Task] = []

    async def note(_executor_id: ExecutorId, task: Task) -> None:
        seen.append(task)

    async with three(tmp_path, tables) as cluster:
        cluster.fleet.before = note
        for _ in range(2):
            stream = await cluster.dispatch.execute(new_query_id(), statement(MANY, results))
            await read_back(results, stream)
            assert all(task.in_background for task in seen)
            orders = [task.store for task in seen if task.store]
            assert [order.task for order in orders] == list(range(len(orders)))
            seen.clear()
            assert (await cluster.execute(MANY)).num_rows == ROWS // 2
            assert not any(task.in_background or task.store for task in seen)
            seen.clear()


async def test_progress_is_reported_from_the_plan_to_the_last_row(
    tmp_path: Path, tables: dict[str, TableSpec], results: Path
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def hold(_executor_id: ExecutorId, task: Task) -> None:
        if task.store is None and task.stage != "s1":
            reached.set()
            await go_on.wait()

    async with three(tmp_path, tables) as cluster:
        cluster.fleet.before = hold
        query_id, progress = new_query_id(), cluster.dispatch.progress
        assert progress(query_id) is None
        starting = asyncio.ensure_future(
            cluster.dispatch.execute(query_id, statement(GROUPS, results))
        )
        await reached.wait()
        early = progress(query_id)
        assert early is not None and early.stages_done < early.stages_total
        assert early.tasks_done < early.tasks_total
        go_on.set()
        stream = await starting
        late = progress(query_id)
        assert late is not None
        assert late.stages_total - late.stages_done == 1
        assert early.tasks_done < late.tasks_done < late.tasks_total
        await read_back(results, stream)
        assert progress(query_id) is None


async def test_progress_of_a_query_that_failed_is_none(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    seen: list[StatementProgress | None] = []
    query_id = new_query_id()

    async def fail(_executor_id: ExecutorId, _task: Task) -> None:
        seen.append(cluster.dispatch.progress(query_id))
        raise ExecutionError("broken")

    async with three(tmp_path, tables) as cluster:
        cluster.fleet.before = fail
        with pytest.raises(ExecutionError, match="broken"):
            await cluster.dispatch.execute(query_id, Statement(GROUPS, {}))
        assert all(seen)
        assert cluster.dispatch.progress(query_id) is None
