"""Describes columns of MySQL and MariaDB, over connections that read definitions of tables."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteColumn

WHOLE = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TYPES = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "year": pa.int16(),
    "bit": pa.binary(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
}
_COMPARABLE_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_UNICODE = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_MOST_DIGITS = 38
_AUTH = (1044, 1045, 1698)
_NO_DATABASE = 1049
Run = Callable[..., list[tuple[Any, ...]]]


@contextmanager
def opened(
    request: SourceRequest, *, needs_database: bool = True
) -> Iterator[tuple[dict[str, str], Run]]:
    """Connect to the server of a request; give its login, and what runs statements there.

    Raises:
        DatasetError: the server cannot be reached, or refuses the login or a statement.
    """
    if find_spec("pymysql") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading MySQL tables needs the package 'pymysql', which is "
            "not installed; install it with: pip install 'caraway[mysql]'",
        )
    import pymysql

    from caraway_plugins.sources.mysql import connecting

    login = connecting.login(request, needs_database=needs_database)
    try:
        connection = connecting.connect(login)
        try:
            yield login, partial(connecting.run, connection)
        finally:
            connecting.drop(connection)
    except (pymysql.MySQLError, OSError) as exc:
        raise _not_read(request, exc) from exc


def _not_read(request: SourceRequest, exc: Exception) -> DatasetError:
    code = exc.args[0] if exc.args else None
    if code in _AUTH:
        return DatasetError("auth", f"dataset '{request.name}': MySQL refuses the login")
    if code == _NO_DATABASE:
        return DatasetError(
            "not_found", f"dataset '{request.name}': the server has no database of this name"
        )
    return DatasetError(
        "unavailable",
        f"dataset '{request.name}': MySQL cannot be reached; check params.mysql_host, "
        "params.mysql_tcp_port and params.mysql_sslmode",
    )


def column_of(
    name: str, kind: str, written: str, charset: str | None, digits: Any, scale: Any
) -> RemoteColumn:
    """Return a column as it is read."""
    written = written.lower()
    if re.match(r"tinyint\(1\)(?! unsigned)", written):
        return RemoteColumn(name, pa.bool_())
    if kind in WHOLE:
        return _whole_number(name, WHOLE[kind], "unsigned" in written)
    if kind == "decimal":
        if int(digits) > _MOST_DIGITS:
            return RemoteColumn(name, pa.string())
        return RemoteColumn(name, pa.decimal128(int(digits), int(scale)), is_comparable=True)
    if "blob" in kind:
        return RemoteColumn(name, pa.binary())
    if (type_ := _TYPES.get(kind)) is not None:
        is_comparable = kind in ("float", "double", "date", "datetime")
        return RemoteColumn(name, type_, is_comparable)
    if kind in _COMPARABLE_TEXTS:
        return RemoteColumn(name, pa.string(), is_comparable=charset in _UNICODE)
    return RemoteColumn(name, pa.string())


def _whole_number(name: str, bits: int, is_unsigned: bool) -> RemoteColumn:
    unsigned = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
    signed = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    return RemoteColumn(name, (unsigned if is_unsigned else signed)[bits], is_comparable=True)
