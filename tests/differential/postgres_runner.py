"""A single node whose tables are in PostgreSQL, as far as PostgreSQL has their types."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from caraway_core.tables import RemoteSplit, RemoteTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from tests.differential.databases import Load, loaded, reading
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Opening, Plain
from tests.kit.clusters import in_process_cluster
from tests.kit.postgres import Server, serving
from tests.kit.remote import column_type, load, quoted, resolved


def distributed(executors: int, policy: Policy) -> Opening:
    """Return in-process executors that each read key ranges of every table."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with serving() as server, tempfile.TemporaryDirectory() as folder:
            tables = await loaded(dataset, _into(server))
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


def _into(server: Server) -> Load:
    def load_rows(name: str, rows: pa.Table) -> TableSpec | None:
        if not all(map(column_type, rows.schema.types)):
            return None
        load(server, name, rows)
        return resolved(server, name)

    return load_rows


@contextmanager
def into_postgres() -> Iterator[Load]:
    """Serve a separate server until the block ends."""
    with serving() as server:
        yield _into(server)


in_postgres = reading(into_postgres)
