"""A single node whose tables are in PostgreSQL, as far as PostgreSQL has their types."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import RemoteSplit, RemoteTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.plain import plain_schema
from caraway_engine.stages import Policy
from caraway_executor.statements.local import LocalExecutor
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Opening, Plain, SingleNode, single_node
from tests.kit.clusters import in_process_cluster
from tests.kit.postgres import Server, serving
from tests.kit.remote import column_type, load, quoted, resolved


def distributed(executors: int, policy: Policy) -> Opening:
    """Return in-process executors that each read key ranges of every table."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with serving() as server, tempfile.TemporaryDirectory() as folder:
            tables = await _tables(dataset, server)
            async with in_process_cluster(
                Path(folder),
                {str(name): divided(server, spec) for name, spec in tables.items()},
                executors=executors,
                policy=policy,
                settings=EngineSettings(2),
            ) as cluster:
                yield Plain(cluster)

    return opening


def divided(server: Server, spec: TableSpec, parts: int = 5) -> TableSpec:
    """Divide a table at values of its first integer column."""
    if not isinstance(spec, RemoteTable):
        return spec
    whole = [each.name for each in spec.columns if pa.types.is_integer(each.type)]
    if not whole:
        return spec
    name, table = quoted(whole[0]), quoted(spec.relation[1])
    values = [row[0] for row in server.rows(f"SELECT DISTINCT {name} FROM {table} ORDER BY 1")]
    found = [value for value in values if value is not None]
    cuts = sorted({found[number * len(found) // parts] for number in range(1, parts) if found})
    edges = pairwise([None, *cuts, None])
    splits = tuple(RemoteSplit(whole[0], low, high, 1_000) for low, high in edges)
    return replace(spec, splits=splits, size_bytes=max(spec.size_bytes, 1_000 * len(splits)))


@asynccontextmanager
async def in_postgres(dataset: Dataset) -> AsyncIterator[Distributed]:
    """Load the supported tables into a separate server, and read them there."""
    with serving() as server:
        tables = await _tables(dataset, server)
        executor = LocalExecutor(EngineSettings(2))
        try:
            failed = executor.install(replace(dataset.snapshot(), tables=tables))
            assert failed == {}
            yield Plain(SingleNode(executor))
        finally:
            executor.close()


async def _tables(dataset: Dataset, server: Server) -> dict[TableName, TableSpec]:
    tables: dict[TableName, TableSpec] = dict(dataset.snapshot().tables)
    async with single_node(dataset) as node:
        for name in dataset.tables:
            rows = await node.execute(f'SELECT * FROM "{name}"')
            rows = rows.cast(plain_schema(rows.schema))
            if all(map(column_type, rows.schema.types)):
                load(server, name, rows)
                tables[TableName(name)] = resolved(server, name)
    return tables
