"""Work that a worker counts, refuses and releases, at every end of its work."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import (
    CarawayError,
    CatalogMovedError,
    InvalidQueryError,
    QueryCancelledError,
    ShuttingDownError,
)
from caraway_core.ids import CatalogVersion, TableName, new_query_id
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.statements import Statement
from caraway_executor.tasks.worker import Worker
from tests.kit.clocks import Clock
from tests.kit.engine import memory
from tests.kit.fragments import task
from tests.kit.stored import stored
from tests.kit.workers import catalog, worker

NUMBERS = pa.schema([("v", pa.int64())])
LARGE = "SELECT v FROM t"
"""Several pages of rows, with `many`."""


def of(rows: int = 3) -> Worker:
    return worker({"t": memory(v=list(range(rows)))})


def many(clock: Callable[[], float] = time.monotonic) -> Worker:
    return worker({"t": memory(v=pa.arange(0, 3_000_000))}, clock=clock)


async def opened(at: Worker, sql: str, call: str = "", origin: str = "here") -> AnswerPage:
    return await at.open(new_query_id(), Statement(sql, {}), origin, call)


async def counts(at: Worker) -> tuple[int, int, int]:
    found = await at.describe()
    return found.active_tasks, found.finished_tasks, found.failed_tasks


async def test_finished_and_failed_work_is_counted_once() -> None:
    at = of()
    page = await opened(at, "SELECT v FROM t")
    assert page.is_last and sum(batch.num_rows for batch in page.batches) == 3
    with pytest.raises(InvalidQueryError):
        await opened(at, "SELECT nothing FROM t")
    assert await counts(at) == (0, 1, 1)
    await at.aclose()


@pytest.mark.parametrize("origin", ["", "elsewhere", "HERE"])
async def test_a_catalog_of_another_scheduler_is_not_used(origin: str) -> None:
    at = of()
    with pytest.raises(ShuttingDownError):
        await opened(at, "SELECT v FROM t", origin=origin)
    with pytest.raises(ShuttingDownError):
        await at.run_task(task("SELECT v FROM t", {"t": NUMBERS}, origin=origin), ())
    assert await counts(at) == (0, 0, 2)
    await at.aclose()


async def test_a_task_of_a_catalog_that_moved_says_so() -> None:
    at = of()
    with pytest.raises(CatalogMovedError):
        await at.run_task(task("SELECT v FROM t", {"t": NUMBERS}, version=7), ())
    assert at.install(catalog({"t": memory(v=[1])}, version=7)) == {}
    await at.run_task(task("SELECT v FROM t", {"t": NUMBERS}, version=7), ())
    assert (await at.describe()).catalogs["here"] == CatalogVersion(7)
    await at.aclose()


async def test_draining_refuses_new_work_and_lets_open_results_be_read() -> None:
    at = many()
    page = await opened(at, LARGE, call="open")
    assert not page.is_last
    at.drain()
    for refused in (
        opened(at, "SELECT v FROM t"),
        at.run_task(task("SELECT v FROM t", {"t": NUMBERS}), ()),
        at.probe(),
    ):
        with pytest.raises(ShuttingDownError, match="draining and takes no new work"):
            await refused
    assert sum(batch.num_rows for batch in (await at.next(page.cursor)).batches)
    found = await at.describe()
    assert found.is_draining and found.active_tasks == 1
    await at.close(page.cursor)
    assert (await at.describe()).active_tasks == 0
    await at.aclose()


async def test_a_cancelled_call_ends_its_results_and_no_others() -> None:
    at = many()
    mine = await opened(at, LARGE, call="mine")
    other = await opened(at, LARGE, call="other")
    await at.cancel("mine")
    with pytest.raises(ShuttingDownError, match="run the statement again"):
        await at.next(mine.cursor)
    assert (await at.next(other.cursor)).batches
    await at.cancel("other")
    await at.cancel("unknown")
    assert (await at.describe()).active_tasks == 0 and at.stopped == 3
    await at.aclose()


async def test_a_running_task_that_is_cancelled_by_its_call_says_so() -> None:
    at = of(2000)
    slow = task("SELECT count(*) FROM t a CROSS JOIN t b CROSS JOIN t c WHERE a.v + b.v < c.v",
                {"t": NUMBERS})  # fmt: skip
    running = asyncio.ensure_future(at.run_task(slow, (), "call"))
    while "call" not in at._calls:
        await asyncio.sleep(0)
    await at.cancel("call")
    with pytest.raises(QueryCancelledError, match="was cancelled"):
        await asyncio.wait_for(running, 60)
    assert not at._calls and (await counts(at))[2] == 1
    await at.aclose()


async def test_closing_ends_all_results_and_releases_the_catalogs() -> None:
    at = many()
    pages = [await opened(at, LARGE, call=f"{number}") for number in range(3)]
    await at.aclose()
    for page in pages:
        with pytest.raises(ShuttingDownError):
            await at.next(page.cursor)
    with pytest.raises(ShuttingDownError):
        await opened(at, "SELECT v FROM t")
    assert (await at.describe()).active_tasks == 0
    await at.aclose()


async def test_results_that_nobody_reads_are_dropped_with_the_heartbeat() -> None:
    clock = Clock()
    at = many(clock)
    page = await opened(at, LARGE)
    clock.now += 299
    assert (await at.describe("here")).active_tasks == 1
    clock.now += 302
    assert (await at.describe("here")).active_tasks == 0
    with pytest.raises(ShuttingDownError, match="nobody read it for 300 s"):
        await at.next(page.cursor)
    await at.aclose()


async def test_a_version_that_cannot_be_read_leaves_the_one_before(tmp_path: Path) -> None:
    at = of()
    good = await stored(tmp_path, pa.table({"v": [1, 2]}))
    assert await at.load("here", TableName("d"), good) == 2
    bad = await stored(tmp_path, pa.table({"v": [3]}), key="bad")
    for file in (tmp_path / "bad").iterdir():
        file.unlink()
    with pytest.raises(CarawayError) as caught:
        await at.load("here", TableName("d"), bad)
    assert "'d'" in str(caught.value) and str(tmp_path) not in str(caught.value)
    assert await at.load("here", TableName("d"), good) == 2
    await at.aclose()


async def test_two_workers_of_one_name_are_told_apart() -> None:
    one, other = of(), of()
    first, second = await one.describe(), await other.describe()
    assert first.executor_id == second.executor_id
    assert first.incarnation != second.incarnation
    assert (await one.describe()).incarnation == first.incarnation
    await one.aclose()
    await other.aclose()
