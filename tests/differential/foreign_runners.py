"""Single nodes whose tables are in databases that a driver of any kind reads."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.adbc.source import AdbcSource
from tests.differential.databases import Load, reading
from tests.differential.runners import Opening
from tests.kit import (
    adbc_drivers,
    clickhouse_server,
    duckdb_files,
    fakesnow_server,
    flight_sql_server,
    mariadb,
    odbc_drivers,
    postgres,
    remote,
    spark_server,
    sqlite_files,
)


def resolved(request: SourceRequest, rows: pa.Table) -> TableSpec:
    """Resolve a table with the types of the rows, which some drivers have not."""
    source = registry.SOURCES.load(request.connector)()
    table: TableSpec = source.resolve(replace(request, declared=tuple(rows.schema)))
    return table


@contextmanager
def _postgresql() -> Iterator[Load]:
    with postgres.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            remote.load(server, name, rows)
            request = adbc_drivers.of_postgres(server, f'"{name}"', adbc_dialect="postgresql")
            return resolved(request, rows)

        yield load


@contextmanager
def _duckdb() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.duckdb"

        def load(name: str, rows: pa.Table) -> TableSpec:
            duckdb_files.load(file, name, rows)
            options = f"path={file};access_mode=read_only"
            request = adbc_drivers.request(
                f'"{name}"',
                adbc_driver="duckdb",
                adbc_driver_options=options,
                adbc_dialect="duckdb",
            )
            table = AdbcSource().resolve(request)
            assert table.schema.equals(rows.schema)
            return table

        yield load


@contextmanager
def _sqlite() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.db"

        def load(name: str, rows: pa.Table) -> TableSpec:
            sqlite_files.load(file, name, rows)
            request = adbc_drivers.request(
                f'"{name}"', adbc_driver="sqlite", adbc_uri=str(file), adbc_dialect="sqlite"
            )
            return resolved(request, rows)

        yield load


@contextmanager
def _standard() -> Iterator[Load]:
    with flight_sql_server.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            server.load(name, rows)
            return AdbcSource().resolve(adbc_drivers.of_flight_sql(server, f'"{name}"'))

        yield load


@contextmanager
def _odbc_postgresql() -> Iterator[Load]:
    with postgres.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            remote.load(server, name, rows)
            path = f'"{name}"'
            return resolved(odbc_drivers.of_postgres(server, path, odbc_dialect="postgresql"), rows)

        yield load


@contextmanager
def _odbc_mysql() -> Iterator[Load]:
    with mariadb.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            mariadb.load(server, name, rows)
            return resolved(
                odbc_drivers.of_mariadb(server, f'"{name}"', odbc_dialect="mysql"), rows
            )

        yield load


@contextmanager
def _odbc_sqlite() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.db"

        def load(name: str, rows: pa.Table) -> TableSpec:
            sqlite_files.load(file, name, rows)
            return resolved(odbc_drivers.of_sqlite(file, f'"{name}"', odbc_dialect="sqlite"), rows)

        yield load


@contextmanager
def in_clickhouse() -> Iterator[Load]:
    """Load tables into ClickHouse."""
    with clickhouse_server.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec | None:
            if not all(map(clickhouse_server.column_type, rows.schema.types)):
                return None
            server.load(name, rows)
            return resolved(server.request(f'"{name}"'), rows)

        yield load


@contextmanager
def _snowflake() -> Iterator[Load]:
    with fakesnow_server.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            server.load(name, rows)
            return resolved(server.request(f'DB.S."{name}"'), rows)

        yield load


@contextmanager
def in_spark() -> Iterator[Load]:
    """Load tables for Spark Connect."""
    with spark_server.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec:
            server.load(name, rows)
            return resolved(server.request(name), rows)

        yield load


RUNNERS: dict[str, Opening] = {
    "adbc/duckdb": reading(_duckdb),
    "adbc/postgresql": reading(_postgresql),
    "adbc/sqlite": reading(_sqlite),
    "adbc/standard": reading(_standard),
    "clickhouse": reading(in_clickhouse),
    "odbc/mysql": reading(_odbc_mysql),
    "odbc/postgresql": reading(_odbc_postgresql),
    "odbc/sqlite": reading(_odbc_sqlite),
    "snowflake": reading(_snowflake),
    "spark": reading(in_spark),
}
"""By the reader and the dialect."""
