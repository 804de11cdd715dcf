"""A single node whose tables are behind Flight SQL: of a server over DuckDB, or of Caraway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.plain import plain_schema
from caraway_executor.statements.local import LocalExecutor
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Plain, SingleNode, single_node
from tests.gateway.flight.serving import serving
from tests.kit import caraway_tables, flight_sql_server


@asynccontextmanager
async def in_flight_sql(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Load the tables into a server over DuckDB, and read them there."""
    with flight_sql_server.serving() as server:
        tables: dict[TableName, TableSpec] = {}
        for name, rows in (await _rows(dataset)).items():
            server.load(name, rows)
            tables[TableName(name)] = await asyncio.to_thread(server.resolved, f'"{name}"')
        async with _over(dataset, tables) as made:
            yield made


@asynccontextmanager
async def in_caraway(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Serve the tables from a runtime of Caraway, and read them there."""
    found = await _rows(dataset)
    served = {name: MemoryTable(rows.schema, rows) for name, rows in found.items()}
    async with serving(served) as server:
        tables: dict[TableName, TableSpec] = {}
        for name in served:
            tables[TableName(name)] = await asyncio.to_thread(
                caraway_tables.resolved, server.address, f'"{name}"'
            )
        async with _over(dataset, tables) as made:
            yield made


@asynccontextmanager
async def _over(dataset: Dataset, tables: dict[TableName, TableSpec]) -> AsyncIterator[Distributed]:
    executor = LocalExecutor(EngineSettings(2))
    try:
        snapshot = dataset.snapshot()
        failed = executor.install(replace(snapshot, tables={**snapshot.tables, **tables}))
        assert failed == {}
        yield Plain(SingleNode(executor))
    finally:
        executor.close()


async def _rows(dataset: Dataset) -> dict[str, pa.Table]:
    found = {}
    async with single_node(dataset) as node:
        for name in dataset.tables:
            rows = await node.execute(f'SELECT * FROM "{name}"')
            found[name] = rows.cast(plain_schema(rows.schema))
    return found
