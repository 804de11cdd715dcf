"""Several schedulers, one after another and side by side, on one executor."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ShuttingDownError
from caraway_core.ids import TableName, new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.catalogs import FORGOTTEN_S
from caraway_executor.tasks.worker import Worker
from tests.kit.clocks import Clock
from tests.kit.engine import memory
from tests.kit.fragments import rows_of, task
from tests.kit.turns import turn
from tests.kit.workers import catalog, identity, worker

ROWS = "SELECT a FROM log ORDER BY a"
LONG = "SELECT v FROM $t"
NUMBERS = pa.schema([("v", pa.int64())])


async def read(of: Worker, sql: str, origin: str) -> list[dict[str, Any]]:
    page = await of.open(new_query_id(), Statement(sql, {}), origin)
    return [row for batch in page.batches for row in batch.to_pylist()]


async def insert(of: Worker, value: int, origin: str) -> None:
    writable = frozenset({TableName("log")})
    await of.open(
        new_query_id(), Statement(f"INSERT INTO log VALUES ({value})", {}, True, writable), origin
    )


async def origins(of: Worker, asks: str = "") -> set[str]:
    return set((await of.describe(asks)).catalogs)


async def test_rows_in_memory_are_the_same_for_every_scheduler() -> None:
    of = worker({"log": memory(a=[1])})
    await insert(of, 2, "here")
    of.install(catalog({"log": memory(a=[1])}, origin="there"))
    await insert(of, 3, "there")
    for origin in ("here", "there"):
        assert await read(of, ROWS, origin) == [{"a": 1}, {"a": 2}, {"a": 3}]
    await of.aclose()


async def test_table_that_starts_with_other_rows_is_another_table() -> None:
    of = worker({"log": memory(a=[1])})
    await insert(of, 2, "here")
    of.install(catalog({"log": memory(a=[5])}, origin="there"))
    assert await read(of, ROWS, "there") == [{"a": 5}]
    of.install(catalog({"log": memory(a=[1])}, version=2, origin="there"))
    assert await read(of, ROWS, "there") == [{"a": 1}, {"a": 2}]
    await of.aclose()


async def test_catalogs_that_come_at_once_share_their_tables() -> None:
    of = Worker(identity(), EngineSettings(1))
    names = [f"s{number}" for number in range(6)]
    made = (catalog({"log": memory(a=[1])}, origin=name) for name in names)
    await asyncio.gather(*(asyncio.to_thread(of.install, each) for each in made))
    await insert(of, 2, "s0")
    for name in names:
        assert await read(of, ROWS, name) == [{"a": 1}, {"a": 2}]
    await of.aclose()


async def test_catalog_of_a_scheduler_that_is_not_heard_of_is_let_go() -> None:
    clock = Clock()
    of = worker({"log": memory(a=[1])}, clock=clock)
    of.install(catalog({"log": memory(a=[1])}, origin="there"))
    clock.now += FORGOTTEN_S
    assert await origins(of, "there") == {"here", "there"}
    clock.now += 1
    assert await origins(of) == {"there"}
    with pytest.raises(ShuttingDownError, match="no catalog of this scheduler"):
        await read(of, ROWS, "here")
    await of.aclose()


async def test_catalog_that_is_used_is_kept() -> None:
    clock = Clock()
    of = worker({"log": memory(a=[1])}, clock=clock)
    of.install(catalog({}, origin="there"))
    clock.now += FORGOTTEN_S - 1
    await read(of, ROWS, "here")
    clock.now += 2
    assert await origins(of, "there") == {"here", "there"}
    await of.aclose()


async def test_catalog_is_kept_for_as_long_as_something_runs_over_it() -> None:
    clock = Clock()
    of = worker({}, clock=clock)
    of.install(catalog({}, origin="there"))
    rows = rows_of("t", pa.table({"v": pa.arange(0, 3_000_000)}))
    reading = asyncio.ensure_future(of.open_task(task(LONG, {"$t": NUMBERS}), [rows]))
    await turn()
    clock.now += FORGOTTEN_S + 1
    assert await origins(of, "there") == {"here", "there"}
    page = await reading
    clock.now += 1
    assert not page.is_last
    assert await origins(of, "there") == {"here", "there"}
    await of.close(page.cursor)
    clock.now += FORGOTTEN_S + 1
    assert await origins(of, "there") == {"there"}
    await of.aclose()


async def test_last_catalog_is_kept_and_with_it_what_was_inserted() -> None:
    clock = Clock()
    of = worker({"log": memory(a=[1])}, clock=clock)
    await insert(of, 2, "here")
    clock.now += 10 * FORGOTTEN_S
    assert await origins(of) == {"here"}
    of.install(catalog({"log": memory(a=[1])}, origin="there"))
    assert await origins(of) == {"there"}
    assert await read(of, ROWS, "there") == [{"a": 1}, {"a": 2}]
    await of.aclose()
