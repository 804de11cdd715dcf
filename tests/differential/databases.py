"""Single nodes whose tables are in a database, as far as it has their types and values."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.rows.plain import plain_schema
from tests.differential.datasets import Dataset
from tests.differential.runners import (
    Distributed,
    Opening,
    Plain,
    SingleNode,
    installed,
    single_node,
)

Load = Callable[[str, pa.Table], TableSpec | None]
"""Writes rows to a table of a database, and resolves it; None: it has not all of the types."""
Loading = Callable[[], AbstractContextManager[Load]]
Tables = dict[TableName, TableSpec]


def reading(loading: Loading) -> Opening:
    """Return a runner of the tables that a database gets."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with loading() as load:
            tables = await loaded(dataset, load)
            with installed(2, replace(dataset.snapshot(), tables=tables)) as executor:
                yield Plain(SingleNode(executor))

    return opening


async def loaded(dataset: Dataset, load: Load) -> Tables:
    """Load the tables that the database supports; the others stay as they are."""
    tables: Tables = dict(dataset.snapshot().tables)
    async with single_node(dataset) as node:
        for name in dataset.tables:
            rows = await node.execute(f'SELECT * FROM "{name}"')
            rows = rows.cast(plain_schema(rows.schema))
            if (table := await asyncio.to_thread(load, name, rows)) is not None:
                tables[TableName(name)] = table
    return tables
