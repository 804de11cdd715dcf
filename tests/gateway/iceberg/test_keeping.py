"""Iceberg tables are loaded once at a time, and again where what they come from has changed."""

import asyncio

import pytest

from caraway_core.ids import TableName
from caraway_gateway.iceberg.keeping import Basis, LoadedTables, TablePlan
from caraway_gateway.iceberg.loaded_tables import LoadedTable
from tests.kit.clocks import Clock

ORDERS, OTHER = TableName("orders"), TableName("other")


class Loads:
    """Loads tables once they are let go, and counts how often."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.error: Exception | None = None

    async def load(self) -> LoadedTable:
        self.count += 1
        number = self.count
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return LoadedTable({"number": number})

    def plan(self, *basis: object, lag_s: float = 0.0) -> TablePlan:
        given: Basis = basis
        return TablePlan(given, self.load, lag_s)


async def number(tables: LoadedTables, plan: TablePlan) -> int:
    return int((await tables.get(ORDERS, plan)).table.metadata["number"])


async def test_a_table_is_loaded_again_once_its_basis_has_changed() -> None:
    tables, loads = LoadedTables(Clock()), Loads()
    assert [await number(tables, loads.plan(1, "a")) for _ in range(2)] == [1, 1]
    assert await number(tables, loads.plan(2, "a")) == 2
    await tables.aclose()


async def test_objects_of_a_basis_are_compared_by_identity() -> None:
    tables, loads, one = LoadedTables(Clock()), Loads(), [1]
    assert [await number(tables, loads.plan(each)) for each in (one, one, [1])] == [1, 1, 2]
    await tables.aclose()


async def test_a_table_may_lag_behind_its_basis_for_a_while() -> None:
    clock, loads = Clock(), Loads()
    tables = LoadedTables(clock)
    assert await number(tables, loads.plan(1, lag_s=10)) == 1
    clock.now += 9
    assert await number(tables, loads.plan(2, lag_s=10)) == 1
    clock.now += 2
    assert await number(tables, loads.plan(2, lag_s=10)) == 2
    await tables.aclose()


async def test_requests_at_once_wait_for_one_load() -> None:
    tables, loads = LoadedTables(Clock()), Loads()
    loads.may_end.clear()
    waiting = [asyncio.ensure_future(number(tables, loads.plan(1))) for _ in range(3)]
    await asyncio.sleep(0)
    assert tables.last(ORDERS) is None
    waiting.pop().cancel()
    loads.may_end.set()
    assert await asyncio.gather(*waiting) == [1, 1]
    assert tables.last(ORDERS) is not None
    await tables.aclose()


async def test_a_failure_is_passed_on_and_the_next_request_tries_again() -> None:
    tables, loads = LoadedTables(Clock()), Loads()
    loads.error = OSError("away")
    with pytest.raises(OSError, match="away"):
        await number(tables, loads.plan(1))
    assert tables.last(ORDERS) is None
    loads.error = None
    assert await number(tables, loads.plan(1)) == 2
    await tables.aclose()


async def test_tables_that_are_gone_are_forgotten_and_their_loads_end() -> None:
    tables, loads = LoadedTables(Clock()), Loads()
    await number(tables, loads.plan(1))
    loads.may_end.clear()
    other = asyncio.ensure_future(tables.get(OTHER, loads.plan(1)))
    await asyncio.sleep(0)
    tables.retain([ORDERS])
    with pytest.raises(asyncio.CancelledError):
        await other
    assert tables.last(ORDERS) is not None and tables.last(OTHER) is None
    await tables.aclose()
    assert tables.last(ORDERS) is None
