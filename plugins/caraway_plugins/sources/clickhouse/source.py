"""Datasets that are tables or views of ClickHouse: `from: clickhouse:TABLE`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import database_files, described_tables, params
from caraway_plugins.sources.clickhouse import column_types, declared

_COLUMNS = """
SELECT name, type FROM system.columns WHERE database = {} AND table = {} ORDER BY position
"""
_SIZE = """
SELECT total_rows, total_bytes FROM system.tables WHERE database = {} AND name = {}
"""
DEFAULT_DATABASE = "default"
_NATIVE_PORTS = {"9000": "8123", "9440": "8443"}
"""Ports of the native protocol, and those of HTTP beside them."""
_PORTS = {"true": "8443", "false": "8123"}
_CONNECT_MS = 10_000


class ClickhouseSource:
    """A table or view that the server answers statements about."""

    declaration = declared.CLICKHOUSE
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)

    def resolve(self, request: SourceRequest) -> RemoteTable:
        login, relation, columns, size = _look(request)
        table = described_tables.table(request, request.connector, columns, login)
        return replace(
            table,
            relation=relation,
            row_count=size.get("total_rows"),
            size_bytes=size.get("total_bytes") or 0,
        )

    def fingerprint(self, request: SourceRequest) -> str | None:
        return described_tables.fingerprint(_look(request)[2])


@contextmanager
def connected(
    request: SourceRequest,
) -> Iterator[tuple[dict[str, str], Callable[[str], Sequence[Mapping[str, Any]]]]]:
    """Yield the login of a request, and what returns the rows of a statement.

    The database of the login is empty if the request names none.

    Raises:
        DatasetError: the client is not installed, or the server cannot be reached, or refuses.
    """
    if find_spec("clickhouse_connect") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading ClickHouse tables needs the package "
            "'clickhouse-connect', which is not installed; install it with: pip install "
            "'caraway[clickhouse]'",
        )
    from caraway_plugins.sources.clickhouse import connecting

    login = _login(request)
    try:
        database = login["db"] or DEFAULT_DATABASE
        connection = connecting.ClickhouseConnection({**login, "db": database})
        try:
            yield login, connection.rows
        finally:
            connection.close()
    except connecting.FAILURES as exc:
        raise _not_read(request, exc) from exc


def _look(
    request: SourceRequest,
) -> tuple[dict[str, str], tuple[str, str], list[RemoteColumn], Mapping[str, int]]:
    schema, table = database_files.relation(request)
    with connected(request) as (login, rows_of):
        login["db"] = login["db"] or DEFAULT_DATABASE
        relation = (login["db"] if schema == "main" else schema, table)
        asked = [text(each) for each in relation]
        rows = rows_of(_COLUMNS.format(*asked))
        sizes = rows_of(_SIZE.format(*asked))
    if not rows:
        raise DatasetError(
            "not_found",
            f"dataset '{request.name}': the server has no table '{'.'.join(relation)}' that the "
            "user may read",
        )
    found = [column_types.column(row["name"], row["type"]) for row in rows]
    columns = [each for each in found if each is not None]
    return login, relation, columns, sizes[0] if sizes else {}


def text(value: str) -> str:
    """Return a literal of a text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _not_read(request: SourceRequest, exc: Exception) -> DatasetError:
    from caraway_plugins.sources.clickhouse import connecting

    start = f"dataset '{request.name}':"
    if connecting.is_refused(exc):
        return DatasetError("auth", f"{start} ClickHouse refuses the login or the user's rights")
    if connecting.is_absent(exc):
        return DatasetError("not_found", f"{start} the server has no database of this name")
    if connecting.is_away(exc):
        return DatasetError(
            "unavailable",
            f"{start} ClickHouse cannot be reached; check params.clickhouse_host, "
            "params.clickhouse_http_port and params.clickhouse_secure",
        )
    return DatasetError("invalid", f"{start} it cannot be read: {connecting.reason(exc)}")


def _login(request: SourceRequest) -> dict[str, str]:
    """Return how to connect.

    Raises:
        DatasetError: a param is missing, unknown or wrong.
    """
    given = params.checked(request.connector, request.params)
    login = _of_string(request, given.text("clickhouse_connection_string"))
    for name in ("host", "db", "user", "pass"):
        login.setdefault(name, given.text(f"clickhouse_{name}") or "")
    if not login["host"]:
        raise _invalid(request, "params.clickhouse_host is missing")
    login["user"] = login["user"] or "default"
    is_secure = given.flag("clickhouse_secure", login.get("secure", "true") == "true")
    login["secure"] = "true" if is_secure else "false"
    native = login.pop("port", None) or given.text("clickhouse_tcp_port")
    port = given.text("clickhouse_http_port") or login.pop("http_port", None)
    login["port"] = port or _http_port(request, native, login["secure"])
    if not login["port"].isdecimal() or not 0 < int(login["port"]) < 65_536:
        raise _invalid(request, "params.clickhouse_http_port is no port")
    login["connect_s"] = str((given.count("connection_timeout") or _CONNECT_MS) / 1_000)
    return login


def _http_port(request: SourceRequest, native: str | None, secure: str) -> str:
    if native is None:
        return _PORTS[secure]
    if native not in _NATIVE_PORTS:
        raise _invalid(
            request,
            "params.clickhouse_tcp_port is a port of the native protocol, and Caraway speaks HTTP; "
            "set params.clickhouse_http_port, which is usually 8123, or 8443 with TLS",
        )
    return _NATIVE_PORTS[native]


def _of_string(request: SourceRequest, written: str | None) -> dict[str, str]:
    if written is None:
        return {}
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as exc:
        raise _invalid(request, "params.clickhouse_connection_string is no URL") from exc
    if parts.scheme not in ("tcp", "clickhouse", "http", "https") or not parts.hostname:
        raise _invalid(
            request,
            "params.clickhouse_connection_string is no URL such as tcp://user:password@host:9000/db",
        )
    query = parse_qs(parts.query)
    is_http = parts.scheme.startswith("http")
    found = {
        "host": parts.hostname,
        "http_port" if is_http else "port": None if port is None else str(port),
        "db": unquote(parts.path.lstrip("/")),
        "user": unquote(parts.username or ""),
        "pass": unquote(parts.password or ""),
        "secure": query["secure"][0] if "secure" in query else "",
    }
    if is_http:
        found["secure"] = "true" if parts.scheme == "https" else "false"
    return {name: value for name, value in found.items() if value}


def _invalid(request: SourceRequest, what: str) -> DatasetError:
    return DatasetError("invalid", f"dataset '{request.name}': {what}")
