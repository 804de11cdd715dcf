"""Kinds of sources: each writes rows to where its source reads them."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from tests.kit import duckdb_files, iceberg_tables, remote, sqlite_files
from tests.kit.postgres import Server

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None], pa.int64()),
        "small": pa.array([1, -1, None, 32767, 0], pa.int16()),
        "price": pa.array(
            [Decimal("1.50"), Decimal("-0.01"), None, Decimal("9999999999999.99"), Decimal(0)],
            pa.decimal128(15, 2),
        ),
        "ratio": pa.array([0.0, -0.0, float("nan"), float("inf"), None], pa.float64()),
        "name": ["Ä", "it's", "", None, "a\nb"],
        "is_on": [True, False, None, True, False],
        "day": [date(2024, 2, 29), date(1, 1, 1), None, date(9999, 12, 31), date(1970, 1, 1)],
        "at": pa.array([MOMENT, None, MOMENT, datetime(1970, 1, 1), MOMENT], pa.timestamp("us")),
        "moment": pa.array([MOMENT.replace(tzinfo=UTC)] * 5, pa.timestamp("us", "UTC")),
    }
)  # fmt: skip
STATEMENTS = [
    "SELECT * FROM t",
    "SELECT name, id FROM t WHERE id >= 2 AND price < 5",
    "SELECT id FROM t WHERE name = 'it''s' OR name = '' OR name IS NULL",
    "SELECT id FROM t WHERE name > 'a'",
    "SELECT id FROM t WHERE ratio = 0 OR ratio > 1",
    "SELECT id FROM t WHERE NOT is_on AND day > DATE '1969-12-31'",
    "SELECT id FROM t WHERE at = TIMESTAMP '2024-02-29 12:30:15.123456'",
    "SELECT id FROM t WHERE moment < TIMESTAMPTZ '2024-02-29T12:30:16Z'",
    "SELECT id FROM t WHERE id NOT IN (1, 2)",
    "SELECT count(*), count(id), count(ratio), sum(id), sum(price), avg(id), avg(price) FROM t",
    "SELECT min(name), max(name), min(day), max(at), min(price), max(ratio) FROM t",
    "SELECT is_on, count(*), sum(small), max(name) FROM t GROUP BY is_on",
    "SELECT name FROM t ORDER BY name DESC NULLS LAST, id LIMIT 3",
    "SELECT id FROM t ORDER BY id NULLS FIRST LIMIT 2 OFFSET 1",
    "SELECT a.id, b.name FROM t AS a JOIN t AS b ON a.id = b.id + 1",
    "SELECT count(*) FROM (SELECT DISTINCT is_on, day FROM t)",
    "SELECT id, row_number() OVER (ORDER BY id) AS n FROM t",
    "SELECT id FROM t LIMIT 0",
]
"""Statements that have the same answers over each source of the rows."""


class Kind(Protocol):
    """Writes rows to where a source reads them."""

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        """Write a table, or replace it; returns what a dataset over it asks of its source."""
        ...

    def absent(self) -> SourceRequest:
        """Return a request for a table that does not exist."""
        ...


class Parquet:
    """A folder of Parquet files."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._folder = folder

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        (self._folder / name).mkdir(exist_ok=True)
        pq.write_table(rows, self._folder / name / "part.parquet")
        return self._request(f"{name}/")

    def absent(self) -> SourceRequest:
        return self._request("none/")

    def _request(self, path: str) -> SourceRequest:
        folder = self._folder
        return SourceRequest(TableName("t"), "file", path, {}, (), "read", folder, folder)


class Delta:
    """A Delta Lake table."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._folder = folder

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        deltalake.write_deltalake(
            self._folder / name, rows, mode="overwrite", schema_mode="overwrite"
        )
        return self._request(name)

    def absent(self) -> SourceRequest:
        return self._request("none")

    def _request(self, path: str) -> SourceRequest:
        folder = self._folder
        return SourceRequest(TableName("t"), "delta", path, {}, (), "read", folder, folder)


class Iceberg:
    """A table of Iceberg in a folder. Its integers have 32 or 64 bits."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._folder = folder

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        iceberg_tables.create(self._folder, rows, name)
        short = [each for each in rows.schema if each.type == pa.int16()]
        return iceberg_tables.request(self._folder, name, short)

    def absent(self) -> SourceRequest:
        return iceberg_tables.request(self._folder, "none")


class Postgres:
    """A table of PostgreSQL."""

    def __init__(self, _folder: Path, server: Server) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.execute(f'DROP TABLE IF EXISTS "{name}"')
        remote.load(self._server, name, rows, key="key" if "key" in rows.column_names else "")
        return remote.request(self._server, name, pg_pass="hunter2")

    def absent(self) -> SourceRequest:
        return remote.request(self._server, "none")


class Duckdb:
    """A table of a DuckDB file."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._file = folder / "tables.duckdb"

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        duckdb_files.load(self._file, name, rows)
        return duckdb_files.request(self._file, name)

    def absent(self) -> SourceRequest:
        return duckdb_files.request(self._file, "none")


class Sqlite:
    """A table of a SQLite file."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._file = folder / "tables.db"

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        sqlite_files.load(self._file, name, rows)
        return sqlite_files.request(self._file, name)

    def absent(self) -> SourceRequest:
        return sqlite_files.request(self._file, "none")


class ArrowFile:
    """A file for the source of docs/contributors/write-a-source.md."""

    def __init__(self, folder: Path, _server: Server) -> None:
        self._folder = folder

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        with pa.ipc.new_file(self._folder / name, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=2)
        return self._request(name)

    def absent(self) -> SourceRequest:
        return self._request("none")

    def _request(self, path: str) -> SourceRequest:
        folder = self._folder
        return SourceRequest(TableName("t"), "arrow_file", path, {}, (), "read", folder, folder)


SOURCES: Mapping[str, Callable[[Path, Server], Kind]] = {
    "file": Parquet,
    "delta": Delta,
    "duckdb": Duckdb,
    "iceberg": Iceberg,
    "postgres": Postgres,
    "sqlite": Sqlite,
    "arrow_file": ArrowFile,
}
"""The sources of files, and of the PostgreSQL server that all tests share."""
