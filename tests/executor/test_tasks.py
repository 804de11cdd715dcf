import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import (
    CatalogMovedError,
    DiskFullError,
    ExecutionError,
    OutOfMemoryQueryError,
    OverloadedError,
    QueryCancelledError,
    ShuttingDownError,
)
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.fleet import Pinned, Split, Task, TaskTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.places import Places
from tests.kit.engine import memory
from tests.kit.fragments import rows_of, task
from tests.kit.stored import path_of, stored
from tests.kit.workers import catalog, worker

NUMBERS = pa.schema([("v", pa.int64())])
WORDS = pa.schema([("v", pa.int64()), ("w", pa.string_view()), ("l", pa.list_(pa.string_view()))])
DIGESTS = 10
SLOW = f"SELECT sum(length({'md5(' * DIGESTS}arrow_cast(v, 'Utf8'){')' * DIGESTS})) AS s FROM $t"


def slow() -> tuple[Task, list[TaskTable]]:
    """Make a task that takes long, and that can be stopped, which not every join can.

    The engine checks for a stop after some batches, so that small ones end it soon.
    """
    batches = pa.table({"v": pa.arange(0, 4_000_000)}).to_batches(max_chunksize=1000)
    return task(SLOW, {"$t": NUMBERS}), [rows_of("t", pa.Table.from_batches(batches))]


async def test_rows_come_as_one_table_of_types_that_travel() -> None:
    of = worker({})
    words = pa.table([[1, 2], ["a", "b" * 40], [["x", None], None]], schema=WORDS)
    report, tables = await of.run_task(
        task("SELECT * FROM $t", {"$t": WORDS}), [rows_of("t", words)]
    )
    (table,) = tables
    assert table.schema.types == [pa.int64(), pa.string(), pa.list_(pa.string())]
    assert table.column_names == ["c0", "c1", "c2"]
    assert [column.to_pylist() for column in table] == [c.to_pylist() for c in words]
    assert report.sizes == ((2, table.nbytes),)
    assert (await of.describe()).finished_tasks == 1


async def test_task_without_rows_gives_an_empty_table() -> None:
    of = worker({"t": memory(v=[1])})
    report, (table,) = await of.run_task(task("SELECT v FROM t WHERE v > 5", {"t": NUMBERS}), ())
    assert table.num_rows == 0
    assert table.schema == pa.schema([("c0", pa.int64())])
    assert report.sizes == ((0, 0),)


async def test_answer_of_a_task_is_read_page_by_page() -> None:
    of = worker({})
    words = pa.table({"v": pa.arange(0, 3_000_000)})
    page = await of.open_task(
        task("SELECT v FROM $t", {"$t": NUMBERS}), [rows_of("t", words.slice(0))]
    )
    assert page.schema == pa.schema([("c0", pa.int64())])
    rows = sum(batch.num_rows for batch in page.batches)
    assert 0 < rows < 3_000_000
    while not page.is_last:
        page = await of.next(page.cursor)
        rows += sum(batch.num_rows for batch in page.batches)
    assert rows == 3_000_000


async def test_task_sees_the_catalog_that_it_was_planned_over() -> None:
    of = worker({"t": memory(v=[1])})
    for version in (2, 3):
        of.install(catalog({"t": memory(v=[version])}, version))
    run = task("SELECT v FROM t", {"t": NUMBERS})
    for version in (1, 2, 3):
        _, (table,) = await of.run_task(replace(run, catalog_version=CatalogVersion(version)), ())
        assert table["c0"].to_pylist() == [version]


async def test_catalog_that_is_not_here_is_an_error_of_its_own() -> None:
    of = worker({"t": memory(v=[1])})
    for version in (2, 3, 4):
        of.install(catalog({"t": memory(v=[version])}, version))
    await of.describe("here", Pinned(CatalogVersion(4), frozenset({CatalogVersion(2)})))
    for version in (2, 4):
        await of.run_task(task("SELECT v FROM t", {"t": NUMBERS}, version=version), ())
    for version in (1, 3, 5):
        with pytest.raises(CatalogMovedError, match=f"version {version} of the catalog"):
            await of.run_task(task("SELECT v FROM t", {"t": NUMBERS}, version=version), ())


async def test_other_types_than_the_task_says_fail_it() -> None:
    of = worker({"t": memory(v=[1])})
    run = task("SELECT v FROM t", {"t": NUMBERS}, schema=pa.schema([("c0", pa.float64())]))
    for work in (of.run_task(run, ()), of.open_task(run, ())):
        with pytest.raises(ExecutionError, match=r"\(int64\).*\(double\)"):
            await work


async def test_cancelled_query_stops_its_tasks_and_gives_their_places_back() -> None:
    of = worker({"t": memory(v=[1])})
    runs = [slow() for _ in range(2)]
    running = [asyncio.ensure_future(of.run_task(*run)) for run in runs]
    await asyncio.wait(running, timeout=0.2)
    for run, _ in runs:
        await of.cancel(run.query_id)
    for each in running:
        with pytest.raises(QueryCancelledError):
            await each
    assert not of._calls and not len(of._cursors)
    async with asyncio.timeout(60):
        _, (table,) = await of.run_task(task("SELECT count(*) AS n FROM t", {"t": NUMBERS}), ())
    assert table["c0"].to_pylist() == [1]
    await of.aclose()


async def test_answers_that_nobody_reads_hold_no_place() -> None:
    of = worker({})
    run = task("SELECT v FROM $t", {"$t": NUMBERS})
    rows = rows_of("t", pa.table({"v": pa.arange(0, 3_000_000)}))
    pages = [await of.open_task(run, [rows]) for _ in range(6)]
    assert not any(page.is_last for page in pages)
    async with asyncio.timeout(60):
        await of.run_task(run, [rows])
    await of.aclose()


async def test_wait_for_a_place_is_bounded() -> None:
    places = Places(1, longest_s=0.02)
    async with places.place():
        with pytest.raises(OverloadedError, match="try again later"):
            async with places.place():
                pass
    async with places.place():
        pass


async def test_work_in_the_background_has_places_of_its_own() -> None:
    places = Places(1, longest_s=0.02)
    async with places.place(in_background=True):
        async with places.place():
            pass
        with pytest.raises(OverloadedError):
            async with places.place(in_background=True):
                pass


async def test_task_does_not_wait_behind_work_in_the_background() -> None:
    of = worker({"t": memory(v=[1])})
    runs = [slow() for _ in range(4)]
    running = [
        asyncio.ensure_future(of.run_task(replace(run, in_background=True), rows))
        for run, rows in runs
    ]
    async with asyncio.timeout(60):
        await of.run_task(task("SELECT v FROM t", {"t": NUMBERS}), ())
    assert not all(each.done() for each in running)
    await of.aclose()
    await asyncio.wait(running)
    assert all(each.exception() for each in running if not each.cancelled())


async def test_task_over_the_memory_limit_fails_and_the_next_one_works() -> None:
    of = worker({}, EngineSettings(2, memory_limit_bytes=4_000_000))
    rows = rows_of("t", pa.table({"v": pa.arange(0, 1_000_000)}))
    run = task("SELECT count(*) AS n FROM $t a JOIN $t b ON a.v = b.v", {"$t": NUMBERS})
    with pytest.raises(OutOfMemoryQueryError, match=r"runtime\.query\.memory_limit"):
        await of.run_task(run, [rows])
    _, (table,) = await of.run_task(task("SELECT max(v) AS m FROM $t", {"$t": NUMBERS}), [rows])
    assert table["c0"].to_pylist() == [999_999]


async def test_full_disk_is_named_when_rows_do_not_fit_in_memory(tmp_path: Path) -> None:
    of = worker({}, EngineSettings(1, 24_000_000, tmp_path / "spilled"))
    session = of._catalogs.executor("here").session
    assert session is not None
    size = "SET datafusion.runtime.max_temp_directory_size = '1M'"
    session._registered.contexts.main.sql(size).collect()
    rows = rows_of("t", pa.table({"v": pa.arange(0, 4_000_000)}))
    run = task("SELECT v, v + 1 AS w FROM $t ORDER BY -v", {"$t": NUMBERS})
    with pytest.raises(DiskFullError, match="the disk for rows that do not fit in memory is full"):
        await of.run_task(run, [rows])


async def test_cancelled_call_stops_the_work() -> None:
    of = worker({})
    running = asyncio.ensure_future(of.run_task(*slow()))
    await asyncio.wait((running,), timeout=0.1)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert not of._calls and not len(of._cursors)
    await of.aclose()


@pytest.mark.parametrize("count", [1, 3])
async def test_split_task_gives_a_table_for_each_partition(count: int) -> None:
    of = worker({})
    words = pa.table([range(9), [f"w{n % 3}" for n in range(9)], [None] * 9], schema=WORDS)
    run = task("SELECT v, w FROM $t", {"$t": WORDS}, split=Split((1,), count))
    report, tables = await of.run_task(run, [rows_of("t", words)])
    assert len(tables) == len(report.sizes) == count
    assert [size for size, _ in report.sizes] == [table.num_rows for table in tables]
    assert sorted(v for table in tables for v in table["c0"].to_pylist()) == list(range(9))
    homes = [set(table["c1"].to_pylist()) for table in tables]
    assert sum(map(len, homes)) == 3
    assert all(table.schema.types == [pa.int64(), pa.string()] for table in tables)


async def test_split_of_no_rows_drops_the_extra_columns_too() -> None:
    of = worker({"t": memory(v=[1])})
    sql = "SELECT v, v + 1 AS k FROM t WHERE v > 5"
    run = task(sql, {"t": NUMBERS}, split=Split((1,), 2, extra=1))
    _, tables = await of.run_task(run, ())
    assert [(table.num_rows, table.column_names) for table in tables] == [(0, ["c0"]), (0, ["c0"])]


async def test_chunks_of_a_long_stream_are_split_alike() -> None:
    of = worker({})
    rows = pa.concat_tables([pa.table({"v": pa.arange(0, 1000)})] * 9000).combine_chunks()
    run = task("SELECT v, v AS w FROM $t", {"$t": NUMBERS}, split=Split((0,), 3, extra=1))
    report, tables = await of.run_task(run, [rows_of("t", rows)])
    assert sum(size for size, _ in report.sizes) == 9_000_000
    homes = [set(table["c0"].unique().to_pylist()) for table in tables]
    assert sum(map(len, homes)) == 1000
    assert all(table["c0"].num_chunks <= 3 for table in tables)
    assert sum(map(len, homes)) == 1000
    assert all(table["c0"].num_chunks <= 3 for table in tables)


async def test_task_that_makes_more_than_fits_fails_and_leaves_room_for_the_next() -> None:
    of = worker({}, EngineSettings(2, memory_limit_bytes=64 * 2**20))
    rows = [rows_of("t", pa.table({"v": pa.arange(0, 4_000_000)}))]
    thrice = "SELECT v, v + 1 AS w, v + 2 AS x FROM $t"
    with pytest.raises(OutOfMemoryQueryError, match=r"64 MiB.*--memory"):
        await of.run_task(task(thrice, {"$t": NUMBERS}), rows)
    for _ in range(3):
        report, _ = await of.run_task(task("SELECT v FROM $t", {"$t": NUMBERS}), rows)
        assert report.sizes[0][0] == 4_000_000


async def test_a_version_is_loaded_and_shown_by_the_heartbeat(tmp_path: Path) -> None:
    spec = await stored(tmp_path, pa.table({"v": list(range(100))}), 4)
    of = worker({"u": memory(v=[1])})
    name = TableName("t")

    chunk = spec.chunks[0]
    assert await of.load("here", name, spec, [chunk.checksum]) == 25
    assert not (await of.describe("here")).holds
    of.install(catalog({"t": spec}, 2))
    assert (await of.describe("here")).holds == (name,)

    # Another scheduler has the same version: its rows are not read again.
    path_of(spec).unlink()
    of.install(catalog({"t": spec}, origin="there"))
    assert await of.load("there", name, spec) == 100
    of.drain()
    with pytest.raises(ShuttingDownError):
        await of.load("here", name, spec)
