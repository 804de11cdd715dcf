"""Source catalogs in the metadata that drivers ask for."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from caraway_core.manifest import DeclaredCatalog
from caraway_core.protocols.catalog_sources import ListedTable
from caraway_core.tables import TableSpec
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState
from tests.gateway.flight.serving import Serving, serving
from tests.gateway.flight.sql.driving import drive, read
from tests.kit.engine import memory

TABLES: dict[str, TableSpec | str] = {
    "t": memory(a=[1]),
    "pg.public.orders": memory(id=[1, 2], who=["x", None]),
}


def list_tables(server: Serving, *names: str) -> None:
    declared = DeclaredCatalog("pg", "postgres", "postgres", "", Path())
    state = SourceCatalogState(declared)
    state.take_list([ListedTable(*each.split(".")) for each in names], None)
    server.services.catalog.source_catalogs.states["pg"] = state


async def rows(server: Serving, message: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.ask(read(message))).to_pylist()
    return found


async def test_catalogs_schemas_and_tables_are_listed() -> None:
    async with serving(TABLES) as server:
        list_tables(server, "public.orders", "crm.people")
        found = await rows(server, proto.CommandGetCatalogs())
        assert [each["catalog_name"] for each in found] == ["caraway", "pg"]
        found = await rows(server, proto.CommandGetDbSchemas(catalog="pg"))
        assert [each["db_schema_name"] for each in found] == ["crm", "public"]
        found = await rows(server, proto.CommandGetDbSchemas(catalog="caraway"))
        assert "crm" not in {each["db_schema_name"] for each in found}
        asked = proto.CommandGetTables(table_name_filter_pattern="%")
        tables = [tuple(each.values())[:3] for each in await rows(server, asked)]
        assert [each for each in tables if each[1] != "information_schema"] == [
            ("caraway", "public", "t"),
            ("pg", "public", "orders"),
            ("pg", "crm", "people"),
        ]


async def test_columns_are_read_where_there_are_few_tables() -> None:
    async with serving(TABLES) as server:
        list_tables(server, "public.orders")
        asked = proto.CommandGetTables(catalog="pg", include_schema=True)
        (one,) = await rows(server, asked)
        assert pa.ipc.read_schema(pa.py_buffer(one["table_schema"])).names == ["id", "who"]
        list_tables(server, "public.orders", *(f"public.t{number}" for number in range(100)))
        found = await rows(server, asked)
        columns = [pa.ipc.read_schema(pa.py_buffer(each["table_schema"])) for each in found]
        assert len(columns) == 101 and not any(columns)


async def test_a_driver_reads_a_table_of_three_parts() -> None:
    def use(connection: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT who FROM pg.public.orders WHERE id = ?", (1,))
            return cursor.fetchall()

    async with serving(TABLES) as server:
        assert await drive(server, use) == [("x",)]
