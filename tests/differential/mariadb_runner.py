"""A single node whose tables are in MariaDB, as far as MariaDB has their types and values."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.plain import plain_schema
from caraway_executor.statements.local import LocalExecutor
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Plain, SingleNode, single_node
from tests.kit import mariadb
from tests.kit.mariadb import Mariadb


@asynccontextmanager
async def in_mariadb(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Load the supported tables into a separate server, and read them there."""
    with mariadb.serving() as server:
        tables = await _tables(dataset, server)
        executor = LocalExecutor(EngineSettings(2))
        try:
            failed = executor.install(replace(dataset.snapshot(), tables=tables))
            assert failed == {}
            yield Plain(SingleNode(executor))
        finally:
            executor.close()


async def _tables(dataset: Dataset, server: Mariadb) -> dict[TableName, TableSpec]:
    tables: dict[TableName, TableSpec] = dict(dataset.snapshot().tables)
    async with single_node(dataset) as node:
        for name in dataset.tables:
            rows = await node.execute(f'SELECT * FROM "{name}"')
            rows = rows.cast(plain_schema(rows.schema))
            if _is_kept(rows):
                mariadb.load(server, name, rows)
                tables[TableName(name)] = mariadb.resolved(server, f'"{name}"')
    return tables


def _is_kept(rows: pa.Table) -> bool:
    names = [each.lower() for each in rows.schema.names]
    if len(set(names)) < len(names) or not all(map(mariadb.column_type, rows.schema.types)):
        return False
    doubles = [each.name for each in rows.schema if pa.types.is_floating(each.type)]
    found, kept = rows.select(doubles), mariadb.kept(rows).select(doubles)
    return repr(found.to_pydict()) == repr(kept.to_pydict())  # Arrow takes -0.0 for 0.0.
