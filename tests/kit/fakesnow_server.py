"""Snowflake as fakesnow imitates it over DuckDB, in an environment of its own.

fakesnow needs another DuckDB than Caraway, so this file is also the program of that environment.
"""

import datetime
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway_core.protocols.sources import SourceRequest

PROGRAM = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "fakesnow" / "bin" / "python"
_STOP_S = 60


class FakesnowServer:
    """A server in a child process."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port, self._process = port, process

    def run(self, *statements: str) -> None:
        """Run statements in the schema of the tests."""
        from caraway_plugins.sources.adbc import connecting
        from caraway_plugins.sources.snowflake.source import SnowflakeSource

        login = SnowflakeSource().login(self.request("DB.S.ANY"))
        connection = connecting.opened(login)
        try:
            for each in statements:
                connection.begin(each).close()
                connection.end()
        finally:
            connection.close()

    def load(self, name: str, rows: "pa.Table") -> None:
        """Create or replace a table with these rows."""
        columns = ", ".join(
            f"{quoted(each.name)} {_column_type(each.type)}" for each in rows.schema
        )
        lines = (", ".join(map(_literal, row.values())) for row in rows.to_pylist())
        values = ", ".join(f"({line})" for line in lines)
        table = f"DB.S.{quoted(name)}"
        filled = [f"INSERT INTO {table} VALUES {values}"] if values else []
        self.run(f"CREATE OR REPLACE TABLE {table} ({columns})", *filled)

    def kill(self) -> None:
        """End it, as a power failure does."""
        self._process.kill()
        self._process.wait()

    def request(self, path: str, **params: str) -> "SourceRequest":
        """Return the request of a dataset over a table."""
        from caraway_core.ids import TableName
        from caraway_core.protocols.sources import SourceRequest

        given = {
            "snowflake_account": "acme",
            "snowflake_username": "reader",
            "snowflake_password": "hunter2",
            "snowflake_host": "127.0.0.1",
            "snowflake_port": str(self.port),
            "snowflake_protocol": "http",
            "client_timeout": "5s",
            **params,
        }
        root = Path("/")
        return SourceRequest(TableName("t"), "snowflake", path, given, (), "read", root, root)


def quoted(name: str) -> str:
    """Return a name as Snowflake reads it."""
    return '"' + name.replace('"', '""') + '"'


def _column_type(type_: "pa.DataType") -> str:
    import pyarrow as pa

    if pa.types.is_decimal128(type_):
        return f"NUMBER({type_.precision}, {type_.scale})"
    if pa.types.is_integer(type_):
        return "NUMBER(38, 0)"
    if pa.types.is_floating(type_):
        return "DOUBLE"
    names = {pa.bool_(): "BOOLEAN", pa.date32(): "DATE", pa.string(): "VARCHAR"}
    return names.get(type_, "TIMESTAMP_NTZ")


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | Decimal):
        return str(value)
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, datetime.datetime):
        return f"'{value.replace(tzinfo=None).isoformat(sep=' ')}'::TIMESTAMP_NTZ"
    if isinstance(value, datetime.date):
        return f"'{value.isoformat()}'::DATE"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"


@contextmanager
def serving() -> Iterator[FakesnowServer]:
    """Start a server; skip the test where fakesnow has no environment."""
    import pytest

    if not PROGRAM.exists():
        pytest.skip("NOT TESTED: fakesnow is missing: make test-clients")
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [PROGRAM, __file__, str(writer)], pass_fds=(writer,), stdout=log, stderr=log
        )
        os.close(writer)
        try:
            with os.fdopen(reader) as pipe:
                line = pipe.readline()
            assert line, log.seek(0) or log.read()[-2_000:]
            server = FakesnowServer(int(line), process)
            server.run("CREATE DATABASE IF NOT EXISTS DB", "CREATE SCHEMA IF NOT EXISTS DB.S")
            yield server
        finally:
            process.kill()
            process.wait(_STOP_S)


def _main() -> None:
    import threading

    import fakesnow
    import fakesnow.arrow
    import pyarrow as pa
    import pyarrow.compute as pc

    fill = fakesnow.arrow.timestamp_to_sf_struct

    def with_nulls(moments: pa.Array) -> pa.Array:
        """Return moments in Snowflake's form, in which fakesnow makes those of 1970 of NULLs."""
        made = fill(moments)
        whole = moments.combine_chunks() if isinstance(moments, pa.ChunkedArray) else moments
        parts = [pc.fill_null(each, 0) for each in made.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(made.type), mask=whole.is_null())

    fakesnow.arrow.timestamp_to_sf_struct = with_nulls
    with fakesnow.server() as login, os.fdopen(int(sys.argv[1]), "w") as pipe:
        pipe.write(f"{login['port']}\n")
        pipe.flush()
        threading.Event().wait()


if __name__ == "__main__":
    _main()
