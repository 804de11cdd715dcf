"""Tables that are each in another source, read by a single node or by several executors."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.plain import plain_schema
from caraway_engine.stages import Policy
from tests.differential import foreign_runners, mariadb_runner, postgres_runner
from tests.differential.databases import Load, Loading
from tests.differential.datasets import Dataset
from tests.differential.runners import (
    Distributed,
    Opening,
    Plain,
    SingleNode,
    installed,
    single_node,
)
from tests.kit import duckdb_files, flight_sql_server, sqlite_files
from tests.kit.clusters import in_process_cluster


@contextmanager
def _duckdb() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.duckdb"

        def load(name: str, rows: pa.Table) -> TableSpec:
            duckdb_files.load(file, name, rows)
            return duckdb_files.resolved(file, duckdb_files.quoted(name))

        yield load


@contextmanager
def _sqlite() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.db"

        def load(name: str, rows: pa.Table) -> TableSpec:
            sqlite_files.load(file, name, rows)
            declared = list(rows.schema)
            return sqlite_files.resolved(file, sqlite_files.quoted(name), declared)

        yield load


@contextmanager
def _flight_sql() -> Iterator[Load]:
    with flight_sql_server.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            server.load(name, rows)
            return foreign_runners.resolved(server.request(f'"{name}"'), rows)

        yield load


OF_TPCH: Mapping[str, Loading] = {
    "customer": postgres_runner.into_postgres,
    "nation": _sqlite,
    "orders": foreign_runners.in_clickhouse,
    "part": foreign_runners.in_spark,
    "partsupp": mariadb_runner.into_mariadb,
    "region": _flight_sql,
    "supplier": _duckdb,
}
"""The source of each table of TPC-H; lineitem remains in Parquet files."""
WHOLE: Mapping[str, Loading] = {
    "duckdb": _duckdb,
    "mysql": mariadb_runner.into_mariadb,
    "postgres": postgres_runner.into_postgres,
    "spark": foreign_runners.in_spark,
    "sqlite": _sqlite,
}


def single(places: Mapping[str, Loading]) -> Opening:
    """Return a single node over tables in these sources."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with ExitStack() as stack:
            tables = await _tables(dataset, places, stack)
            with installed(2, replace(dataset.snapshot(), tables=tables)) as executor:
                yield Plain(SingleNode(executor))

    return opening


def distributed(places: Mapping[str, Loading], executors: int) -> Opening:
    """Return in-process executors over tables in these sources, which divide all that they can."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
            tables = await _tables(dataset, places, stack)
            async with in_process_cluster(
                Path(folder),
                {str(name): spec for name, spec in tables.items()},
                executors=executors,
                policy=Policy(small_table_bytes=0),
                settings=EngineSettings(2),
            ) as cluster:
                yield Plain(cluster)

    return opening


def all_in(source: str) -> Mapping[str, Loading]:
    """Return places of which each table of TPC-H is in one source."""
    return dict.fromkeys([*OF_TPCH, "lineitem"], WHOLE[source])


async def _tables(
    dataset: Dataset, places: Mapping[str, Loading], stack: ExitStack
) -> dict[TableName, TableSpec]:
    tables: dict[TableName, TableSpec] = dict(dataset.snapshot().tables)
    loads = {loading: stack.enter_context(loading()) for loading in set(places.values())}
    async with single_node(dataset) as node:
        for name, loading in places.items():
            rows = await node.execute(f'SELECT * FROM "{name}"')
            rows = rows.cast(plain_schema(rows.schema))
            table = await asyncio.to_thread(loads[loading], name, rows)
            assert table is not None and type(table) is not type(tables[TableName(name)])
            tables[TableName(name)] = table
    return tables
