"""A real MariaDB server for the tests that need one, behind a Unix socket; tables in it."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pymysql
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.mysql.source import MysqlSource
from tests.kit.deadlines import until

DATABASE = "caraway"
_SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_INSTALL = shutil.which("mariadb-install-db")
_MEMORY = Path("/dev/shm")
_START_S = 60
_STOP_S = 60
_FLAGS = (
    "--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M",
    "--innodb-use-native-aio=0", "--innodb-log-file-size=8M", "--character-set-server=latin1",
    "--sql-mode=ANSI_QUOTES,ALLOW_INVALID_DATES", "--default-time-zone=+05:30",
)  # fmt: skip
"""Settings that a session of the source has to override."""
LOGGED = (
    "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
)  # fmt: skip
"""Settings with which changes can be followed."""
_TYPES = {
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint32(): "INT UNSIGNED",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.string(): "LONGTEXT",
    pa.timestamp("us"): "DATETIME(6)",
    pa.timestamp("us", "UTC"): "TIMESTAMP(6) NULL",
}


class Mariadb:
    """A server with its own data folder."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self.flags = list(flags)
        self.socket = folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None
        shutil.copytree(_new_data(), folder / "data")

    @property
    def params(self) -> dict[str, str]:
        """The params with which a dataset connects to it."""
        return {"mysql_host": str(self.socket), "mysql_user": "root", "mysql_db": DATABASE}

    def start(self) -> None:
        assert _SERVER is not None
        with (self._folder / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                [_SERVER, "--no-defaults", f"--datadir={self._folder / 'data'}", *_identity(),
                 f"--socket={self.socket}", f"--pid-file={self._folder / 'pid'}",
                 # In a folder of others, a server that starts removes what they keep there.
                 f"--tmpdir={self._folder}", *_FLAGS, *self.flags],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until(self._answers, "MariaDB answers", _START_S)
        self.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")

    def kill(self) -> None:
        """Kill it, as a power failure does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None
            self.socket.unlink(missing_ok=True)

    def execute(self, *statements: str) -> None:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for each in statements:
                cursor.execute(each)

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def connect(self) -> Any:
        connection = pymysql.connect(
            unix_socket=str(self.socket), user="root", charset="utf8mb4", autocommit=True,
            init_command="SET sql_mode = 'NO_BACKSLASH_ESCAPES', time_zone = '+00:00'",
        )  # fmt: skip
        with connection.cursor() as cursor, suppress(pymysql.MySQLError):
            cursor.execute(f"USE {DATABASE}")
        return connection

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log()
        # The client leaves sockets open that it cannot connect.
        with suppress(pymysql.MySQLError):
            if self.socket.exists():
                self.connect().close()
                return True
        return False

    def _log(self) -> str:
        return (self._folder / "log.txt").read_text()[-2_000:]


def _identity() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


@functools.cache
def _new_data() -> Path:
    """Make the data of a new server, once for all servers of this process."""
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    atexit.register(shutil.rmtree, folder)
    assert _INSTALL is not None
    subprocess.run(
        [_INSTALL, "--no-defaults", f"--datadir={folder / 'data'}", *_identity(),
         "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder / "data"


@contextmanager
def serving(in_memory: bool = False, flags: Sequence[str] = ()) -> Iterator[Mariadb]:
    """Start a server; skip the test where MariaDB is not installed.

    One that is `in_memory` does not wait for a disk, as it does for each table that it makes.
    """
    if _SERVER is None or _INSTALL is None or shutil.which("my_print_defaults") is None:
        pytest.skip("MariaDB is missing: apt-get install mariadb-server-core mariadb-client-core")
    # A Unix socket path has at most 107 characters, which pytest's folders can exceed.
    memory = _MEMORY if in_memory and _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="mariadb-", dir=memory))
    server = Mariadb(folder, *flags)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)


def request(
    server: Mariadb, name: str, declared: Sequence[pa.Field] = (), **params: str
) -> SourceRequest:
    """Return the request of a dataset over a table of the server."""
    root = Path("/")
    given = {**server.params, **params}
    return SourceRequest(TableName("t"), "mysql", name, given, tuple(declared), "read", root, root)


def resolved(server: Mariadb, name: str, declared: Sequence[pa.Field] = ()) -> RemoteTable:
    """Return a table of the server as its source resolves it."""
    return MysqlSource().read_in_place(request(server, name, declared))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def column_type(type_: pa.DataType) -> str | None:
    """Return MariaDB's name of a type, or None if no type has the same values."""
    if pa.types.is_decimal128(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _TYPES.get(type_)


def kept(rows: pa.Table) -> pa.Table:
    """Return rows as MariaDB keeps them, which has finite numbers and no -0.0."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(number)
            column = pc.if_else(pc.is_finite(column), column, None)
            rows = rows.set_column(number, field, pc.if_else(pc.equal(column, 0.0), 0.0, column))
    return rows


def load(server: Mariadb, name: str, rows: pa.Table, key: str = "") -> None:
    """Create or replace a table with these rows; a key is a column with distinct values."""
    columns = ", ".join(f"{quoted(each.name)} {column_type(each.type)}" for each in rows.schema)
    unique = f", PRIMARY KEY ({quoted(key)})" if key else ""
    marks = ", ".join(["%s"] * rows.num_columns)
    values = list(zip(*(_values(each) for each in kept(rows).columns), strict=True))
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        cursor.execute(
            f"CREATE TABLE {quoted(name)} ({columns}{unique}) ENGINE=Aria CHARSET=utf8mb4"
        )
        cursor.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", values)


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us"))
    return [None if each is None else each for each in column.to_pylist()]
