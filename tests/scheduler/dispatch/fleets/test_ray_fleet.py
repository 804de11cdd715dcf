import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core import ray_nodes
from caraway_core.errors import (
    ExecutorLostError,
    InvalidQueryError,
    NotDistributableError,
    PartLostError,
)
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.index_orders import IndexOrder, WordOrder
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Description, Input, Split
from caraway_core.statements import Statement
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.stages.inputs import INPUT_PREFIX
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.deadlines import until
from tests.kit.engine import memory
from tests.kit.fragments import task
from tests.kit.ray_cluster import RayCluster, marked
from tests.kit.workers import catalog

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

ONE, TWO = ExecutorId("e1"), ExecutorId("e2")
NUMBERS = pa.schema([("v", pa.int64())])
C0 = pa.schema([("c0", pa.int64())])
ENDLESS = (
    "SELECT count(*) FROM generate_series(1, 300000) a JOIN generate_series(1, 300000) b "
    "ON a.value <> b.value + 1"
)


@contextlib.asynccontextmanager
async def fleet(cluster: RayCluster, rows: int = 4) -> AsyncIterator[RayFleet]:
    made = RayFleet(ray_nodes.read_token(cluster.token))
    await heard(made, ONE, TWO)
    await connected(made, ONE, TWO)
    for each in (ONE, TWO):
        assert await made.install(each, catalog({"t": memory(v=list(range(rows)))})) == {}
    try:
        yield made
    finally:
        await made.aclose()


async def heard(made: RayFleet, *executors: ExecutorId) -> dict[ExecutorId, Description]:
    """Send heartbeats until all executors have answered."""
    async with asyncio.timeout(60):
        while True:
            told = {each.executor_id: each for each in await made.describe()}
            if told.keys() >= set(executors):
                return told


async def connected(made: RayFleet, *executors: ExecutorId) -> None:
    """Send heartbeats until there is a channel to each executor."""
    async with asyncio.timeout(60):
        while not all(
            (direct := made._peers[each].direct) is not None and direct.is_open
            for each in executors
        ):
            await made.describe()


def statement(sql: str) -> Statement:
    return Statement(sql, {})


async def table(stream: BatchStream) -> pa.Table:
    return pa.Table.from_batches([batch async for batch in stream], schema=stream.schema)


async def active(made: RayFleet, executor: ExecutorId) -> int:
    return (await heard(made, executor))[executor].active_tasks


async def until_idle(made: RayFleet, executor: ExecutorId) -> None:
    async with asyncio.timeout(60):
        while await active(made, executor):
            pass


async def test_searches_that_begin_together_have_an_answer_each(cluster: RayCluster) -> None:
    order = IndexOrder(
        TableName("t"), WordOrder(("v",), "tea", "english", (1.0,)), is_required=True
    )
    async with fleet(cluster) as made:
        answers = await asyncio.gather(
            made.execute(ONE, new_query_id(), replace(statement("SELECT 1"), index=order), "here"),
            made.execute(ONE, new_query_id(), replace(statement("SELECT 2"), index=order), "here"),
            made.execute(ONE, new_query_id(), statement("SELECT 3 AS c0"), "here"),
            return_exceptions=True,
        )
        for each in answers[:2]:
            assert isinstance(each, NotDistributableError), each
            assert "'t' is not an accelerated dataset" in each.message
        assert not isinstance(answers[2], BaseException)
        assert (await table(answers[2])).to_pylist() == [{"c0": 3}]
        await until_idle(made, ONE)


async def test_file_that_executors_do_not_see_is_sent_to_them(
    cluster: RayCluster, tmp_path: Path
) -> None:
    path = tmp_path / "cache" / "a.parquet"
    path.parent.mkdir()
    rows = pa.table({"v": [1, 2]})
    pq.write_table(rows, path)
    scan = FileScan("parquet", (str(path),), rows.schema, ".parquet")
    web = catalog({"web": FilesTable(rows.schema, (scan,))})
    (file,) = OwnFiles(path.parent).find(web.tables)
    # A file with another size under the same path is not the same file.
    unseen = replace(web, files=(replace(file, size_bytes=file.size_bytes + 1),))
    async with fleet(cluster) as of:
        failed = await asyncio.gather(*(of.install(each, unseen) for each in (ONE, TWO)))
        assert failed == [{}, {}]
        path.unlink()
        for each in (ONE, TWO):
            select = statement("SELECT sum(v) AS s FROM web")
            answer = await table(await of.execute(each, new_query_id(), select, "here"))
            assert answer.to_pylist() == [{"s": 3}]


async def test_executors_describe_themselves(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        told = await heard(of, ONE, TWO)
        assert told[TWO].address == cluster.node_ip("e2")
        assert (told[TWO].cores, told[TWO].memory_bytes) == (1, 512 * 2**20)
        assert told[TWO].catalogs == {"here": 1}
        await of.probe(ONE)


async def test_whole_statements_run_and_fail_with_their_own_error(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        stream = await of.execute(TWO, new_query_id(), statement("SELECT v FROM t"), "here")
        assert stream.reads_only_catalog
        assert (await table(stream)).column(0).to_pylist() == [0, 1, 2, 3]
        with pytest.raises(InvalidQueryError, match="table 'gone' not found"):
            await of.execute(TWO, new_query_id(), statement("SELECT * FROM gone"), "here")


async def test_long_answers_come_page_by_page_with_their_own_types(cluster: RayCluster) -> None:
    sql = (
        "SELECT value AS n, arrow_cast(concat('row ', value), 'Utf8View') AS s "
        "FROM generate_series(1, 400000)"
    )
    async with fleet(cluster) as of:
        stream = await of.execute(TWO, new_query_id(), statement(sql), "here")
        assert stream.schema.field("s").type == pa.string_view()
        read = await table(stream)
        assert read.num_rows == 400_000
        assert read.column("s")[-1].as_py() == f"row {read.column('n')[-1].as_py()}"
        await until_idle(of, TWO)


async def test_answer_that_is_left_unread_is_closed_on_the_executor(cluster: RayCluster) -> None:
    sql = "SELECT value FROM generate_series(1, 50000000)"
    async with fleet(cluster) as of:
        stream = await of.execute(TWO, new_query_id(), statement(sql), "here")
        assert await active(of, TWO)
        await stream.aclose()
        await until_idle(of, TWO)


async def test_parts_of_one_executor_are_read_by_the_other(cluster: RayCluster) -> None:
    async with fleet(cluster, 200_000) as of:
        made = [
            await of.run_task(each, task(sql, {"t": NUMBERS}), ())
            for each, sql in (
                (ONE, "SELECT v FROM t WHERE v % 2 = 0"),
                (TWO, "SELECT v FROM t WHERE v % 2 = 1"),
            )
        ]
        both = Input(INPUT_PREFIX + "x", C0, made[0].parts + made[1].parts)
        assert [(part.rows, part.executor_id) for part in both.parts] == [
            (100_000, ONE), (100_000, TWO),
        ]  # fmt: skip
        sums = "SELECT sum(c0) AS s, count(*) AS n FROM $x"
        for each in (ONE, TWO):
            read = await table(await of.stream(each, task(sums, {"$x": C0}), [both]))
            assert [list(row.values()) for row in read.to_pylist()] == [[19999900000, 200_000]]


async def test_task_leaves_a_part_for_each_hash_partition(cluster: RayCluster) -> None:
    async with fleet(cluster, 10_000) as of:
        made = await of.run_task(
            TWO, task("SELECT v FROM t", {"t": NUMBERS}, split=Split((0,), 4)), ()
        )
        assert len(made.parts) == 4
        assert sum(part.rows for part in made.parts) == 10_000
        assert all(part.rows for part in made.parts)


async def test_dropped_parts_free_their_memory(cluster: RayCluster) -> None:
    async with fleet(cluster, 6_000_000) as of:
        for _ in range(4):
            made = await of.run_task(TWO, task("SELECT v FROM t", {"t": NUMBERS}), ())
            assert made.parts[0].size_bytes > 45_000_000
            del made
            gc.collect()
    # Two of them do not fit into memory together, and Ray spills what does not fit.
    session = Path((cluster.folder / "e2" / "ray" / "session-folder").read_text())
    assert not list(session.glob("*/ray_spilled_objects_*/*"))


async def test_control_calls_are_answered_while_queries_run(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        queries = [
            asyncio.ensure_future(of.execute(TWO, new_query_id(), statement(ENDLESS), "here"))
            for _ in range(3)
        ]
        async with asyncio.timeout(60):
            while await active(of, TWO) < 3:
                pass
        for query in queries:
            query.cancel()
        assert all(isinstance(each, asyncio.CancelledError) for each in await _ended(*queries))
        await until_idle(of, TWO)


async def test_killed_executor_fails_its_calls_and_comes_back(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        before = (await heard(of, TWO))[TWO]
        made = await of.run_task(TWO, task("SELECT v FROM t", {"t": NUMBERS}), ())
        assert made.parts[0].rows == 4
        query = asyncio.ensure_future(of.execute(TWO, new_query_id(), statement(ENDLESS), "here"))
        while not await active(of, TWO):
            pass
        os.kill(cluster.actor_pid("e2"), signal.SIGKILL)
        with pytest.raises(ExecutorLostError, match="'e2'"):
            await query
        after = (await heard(of, TWO))[TWO]
        assert after.incarnation != before.incarnation
        assert after.catalogs == {}


async def test_stopped_executor_blocks_nothing_once_it_is_lost(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        pid = cluster.actor_pid("e2")
        os.kill(pid, signal.SIGSTOP)
        try:
            query = asyncio.ensure_future(
                of.execute(TWO, new_query_id(), statement("SELECT v FROM t"), "here")
            )
            assert [each.executor_id for each in await of.describe()] == [ONE]
            of.lost(TWO)
            with pytest.raises(ExecutorLostError, match="it no longer answers"):
                await query
        finally:
            os.kill(pid, signal.SIGCONT)
        await heard(of, ONE, TWO)


async def test_parts_are_lost_with_their_node_which_joins_again(cluster: RayCluster) -> None:
    async with fleet(cluster, 500_000) as of:
        made = await of.run_task(TWO, task("SELECT v FROM t", {"t": NUMBERS}), ())
        before = (await heard(of, TWO))[TWO]
        os.kill(cluster.raylet_pid("e2"), signal.SIGKILL)
        part = Input(INPUT_PREFIX + "x", C0, made.parts)
        with pytest.raises(PartLostError) as caught:
            await table(
                await of.stream(ONE, task("SELECT count(c0) AS n FROM $x", {"$x": C0}), [part])
            )
        assert caught.value.executor_id == TWO
        after = (await heard(of, ONE, TWO))[TWO]
        assert after.incarnation != before.incarnation


async def test_small_parts_outlive_their_executor(cluster: RayCluster) -> None:
    async with fleet(cluster) as of:
        made = await of.run_task(TWO, task("SELECT v FROM t", {"t": NUMBERS}), ())
        before = (await heard(of, TWO))[TWO]
        os.kill(cluster.actor_pid("e2"), signal.SIGKILL)
        part = Input(INPUT_PREFIX + "x", C0, made.parts)
        count = task("SELECT count(c0) AS n FROM $x", {"$x": C0})
        read = await table(await of.stream(ONE, count, [part]))
        assert read.to_pylist() == [{"c0": 4}]
        [brought] = await of.fetch([part])
        assert [each.num_rows for each in brought.tables] == [4]
        after = (await heard(of, ONE, TWO))[TWO]
        assert after.incarnation != before.incarnation


async def test_stopping_executor_drains_and_leaves_nothing(cluster: RayCluster) -> None:
    third = cluster.begin("e3").wait_up()
    async with fleet(cluster) as of:
        await heard(of, ExecutorId("e3"))
        assert third.terminate() == 0
    assert "draining" in third.log.read_text()
    until(lambda: not [each for each in _titles(cluster) if "/e3/" in each], "e3 is gone")


def _titles(cluster: RayCluster) -> list[str]:
    return list(marked(cluster.mark).values())


async def _ended(*queries: asyncio.Future[BatchStream]) -> list[BatchStream | BaseException]:
    return await asyncio.gather(*queries, return_exceptions=True)
