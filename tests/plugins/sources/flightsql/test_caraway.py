import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables import MemoryTable
from caraway_plugins.sources.flightsql.reader import FlightSqlReader
from caraway_plugins.sources.flightsql.source import CarawaySource
from tests.gateway.flight.serving import KEYS, serving
from tests.kit import caraway_tables
from tests.kit.engine import rows, session
from tests.kit.remote import watched

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 2, None], pa.int32()),
        "name": ["a", "b%", None, "ä"],
        "price": pa.array([Decimal("1.50"), Decimal(2), None, Decimal(4)], pa.decimal128(15, 2)),
        "at": pa.array([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us")),
        "moment": pa.array([MOMENT.replace(tzinfo=UTC)] * 4, pa.timestamp("us", "UTC")),
    }
)
TABLES = {"shop.t": MemoryTable(ROWS.schema, ROWS)}
STATEMENTS = [
    ("SELECT count(*) AS n, sum(price) AS s, max(name) AS m FROM t", "sum("),
    ("SELECT id, count(DISTINCT name) AS n FROM t GROUP BY id ORDER BY id", "GROUP BY"),
    ("SELECT id FROM t WHERE name LIKE 'b%'", "LIKE"),
    ("SELECT id FROM t WHERE at >= TIMESTAMP '2024-02-29 12:30:15.123456'", "arrow_cast"),
    ("SELECT count(*) AS n FROM t WHERE moment < TIMESTAMPTZ '2024-02-29T12:30:16Z'", "UTC"),
    ("SELECT name FROM t WHERE name > 'a' ORDER BY name DESC NULLS LAST LIMIT 1", "LIMIT 1"),
    ("SELECT * FROM t", 'FROM "shop"."t"'),
]


async def test_the_other_runtime_has_the_same_engine() -> None:
    expected = session({"t": MemoryTable(ROWS.schema, ROWS)})
    async with serving(TABLES) as server:
        table = await asyncio.to_thread(caraway_tables.resolved, server.address, "shop.t")
        over = session({"t": table})
        with watched("caraway") as sent:
            for sql, part in STATEMENTS:
                found = await rows(over, sql)
                assert sorted(map(repr, found)) == sorted(map(repr, await rows(expected, sql)))
                assert part in sent[-1], sent[-1]
        await server.idle()


async def test_keys_of_the_other_runtime() -> None:
    async with serving(TABLES, keys=KEYS) as server:

        def resolved(key: str) -> pa.Schema:
            return caraway_tables.resolved(server.address, "shop.t", caraway_api_key=key).schema

        assert (await asyncio.to_thread(resolved, "reader")).names == ROWS.schema.names
        with pytest.raises(DatasetError) as caught:
            await asyncio.to_thread(resolved, "hunter2")
    assert caught.value.type == "auth"
    assert "hunter2" not in caught.value.message


async def test_table_that_the_other_runtime_does_not_have() -> None:
    async with serving(TABLES) as server:
        asked = caraway_tables.request(server.address, "shop.none")
        with pytest.raises(DatasetError) as caught:
            await asyncio.to_thread(CarawaySource().resolve, asked)
    assert caught.value.type == "not_found"


async def test_a_cancelled_statement_ends_there() -> None:
    many = pa.table({"i": range(200_000), "s": ["x" * 50] * 200_000})
    async with serving({"t": MemoryTable(many.schema, many)}) as server:
        table = await asyncio.to_thread(caraway_tables.resolved, server.address, "t")
        found = FlightSqlReader().read(table, "SELECT a.i, a.s FROM t a, t b", table.schema)
        await asyncio.to_thread(next, iter(found))
        assert len(server.services.queries.active) == 1
        await asyncio.to_thread(found.close)
        await server.idle()
