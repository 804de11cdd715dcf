"""A single node whose tables are in a DuckDB file, as far as DuckDB has their types."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.plain import plain_schema
from caraway_executor.statements.local import LocalExecutor
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Plain, SingleNode, single_node
from tests.kit import duckdb_files

LEAST_TABLES = 0.3
"""The part of the tables that has to be in the file, for the runner to show anything."""


@asynccontextmanager
async def in_duckdb(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Load the supported tables into a file, and read them there."""
    with tempfile.TemporaryDirectory() as folder:
        tables = await _tables(dataset, Path(folder) / "tables.duckdb")
        executor = LocalExecutor(EngineSettings(2))
        try:
            failed = executor.install(replace(dataset.snapshot(), tables=tables))
            assert failed == {}
            yield Plain(SingleNode(executor))
        finally:
            executor.close()


async def _tables(dataset: Dataset, file: Path) -> dict[TableName, TableSpec]:
    tables: dict[TableName, TableSpec] = dict(dataset.snapshot().tables)
    moved = 0
    async with single_node(dataset) as node:
        for name in dataset.tables:
            rows = await node.execute(f'SELECT * FROM "{name}"')
            rows = rows.cast(plain_schema(rows.schema))
            duckdb_files.load(file, name, rows)
            found = duckdb_files.resolved(file, duckdb_files.quoted(name))
            if found.schema.equals(rows.schema):
                tables[TableName(name)] = found
                moved += 1
    assert moved >= LEAST_TABLES * len(dataset.tables), moved
    return tables
