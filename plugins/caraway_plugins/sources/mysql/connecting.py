"""Logins and connections of MySQL and MariaDB; all of them have the same session."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.connections import Connection, MySQLResult
from pymysql.constants import CLIENT, COMMAND

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.mysql import declared

CONNECT_S = 10
_NO_TLS = 2026
_UNVERIFIED = {"check_hostname": False, "verify_mode": "none"}
_PORT = "3306"
_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")


def login(request: SourceRequest, *, needs_database: bool = True) -> dict[str, str]:
    """Return how to connect, in the form that is sent to executors.

    Raises:
        DatasetError: a param is missing or wrong.
    """
    given = params.checked(request.connector, request.params)
    found = _of_string(request, given.text("mysql_connection_string"))
    for name in ("host", "db", "user", "pass", "sslmode", "sslrootcert"):
        found.setdefault(name, given.text(f"mysql_{name}") or "")
    found.setdefault("port", given.text("mysql_tcp_port") or _PORT)
    found["sslmode"] = found["sslmode"].lower().replace("-", "_") or "required"
    for name in ("host", "db", "user") if needs_database else ("host", "user"):
        if not found[name]:
            raise _invalid(request, f"params.mysql_{name} is missing")
    if found["sslmode"] not in _MODES:
        raise _invalid(request, f"params.mysql_sslmode is none of {', '.join(_MODES)}")
    if not found["port"].isdecimal() or not 0 < int(found["port"]) < 65_536:
        raise _invalid(request, "params.mysql_tcp_port is no port")
    return found


def _of_string(request: SourceRequest, written: str | None) -> dict[str, str]:
    if written is None:
        return {}
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as exc:
        raise _invalid(request, "params.mysql_connection_string is no URL") from exc
    if parts.scheme not in ("mysql", "mariadb"):
        raise _invalid(
            request,
            "params.mysql_connection_string is no URL such as mysql://user:password@host:3306/db",
        )
    query = parse_qs(parts.query)
    found = {
        "host": parts.hostname,
        "port": None if port is None else str(port),
        "db": unquote(parts.path.lstrip("/")),
        "user": unquote(parts.username or ""),
        "pass": unquote(parts.password or ""),
        "sslmode": next((query[name][0] for name in ("sslmode", "ssl-mode") if name in query), ""),
    }
    return {name: value for name, value in found.items() if value}


def _invalid(request: SourceRequest, what: str) -> DatasetError:
    return DatasetError("invalid", f"dataset '{request.name}': {what}")


def connect(login: Mapping[str, str]) -> Connection:
    """Connect, with a session that does not depend on the server's settings.

    Raises:
        pymysql.MySQLError: the server cannot be reached, or refuses the login.
    """
    connection = _opened(login)
    try:
        for each in (declared.SESSION, declared.READ_ONLY):
            run(connection, each)
    except BaseException:
        drop(connection)
        raise
    return connection


def _opened(login: Mapping[str, str]) -> Connection:
    """Connect with TLS as the mode demands; without it over a socket of this machine."""
    if login["host"].startswith("/"):
        return _connected(login, {"unix_socket": login["host"], "ssl_disabled": True})
    place = {"host": login["host"], "port": int(login["port"])}
    match login["sslmode"]:
        case "disabled":
            return _connected(login, {**place, "ssl_disabled": True})
        case "preferred":
            try:
                return _connected(login, {**place, "ssl": _UNVERIFIED})
            except pymysql.OperationalError as exc:
                if exc.args[0] != _NO_TLS:
                    raise
                return _connected(login, {**place, "ssl_disabled": True})
        case "required":
            return _connected(login, {**place, "ssl": _UNVERIFIED})
        case mode:
            verified = {"ssl_ca": login["sslrootcert"] or None, "ssl_verify_cert": True}
            whole = {"ssl_verify_identity": mode == "verify_identity"}
            return _connected(login, {**place, **verified, **whole})


def _connected(login: Mapping[str, str], how: Mapping[str, object]) -> Connection:
    connection = pymysql.connect(
        **how,
        user=login["user"],
        password=login["pass"],
        database=login["db"] or None,
        charset="utf8mb4",
        connect_timeout=CONNECT_S,
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,  # An UPDATE counts rows that have their new values already.
        defer_connect=True,
    )
    connection.connect(_local(connection) if "unix_socket" in how else None)
    return connection


def _local(connection: Connection) -> socket.socket:
    """Return a socket of this machine, which pymysql would leave open where nobody answers."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(CONNECT_S)
        made.connect(connection.unix_socket)
    except OSError as exc:
        made.close()
        raise pymysql.OperationalError(2003, "the server does not answer") from exc
    connection._secure = True
    return made


def run(connection: Connection, sql: str, *arguments: str) -> list[tuple[Any, ...]]:
    """Run a statement with few rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments or None)
        return list(cursor.fetchall())


def sent(connection: Connection, sql: str) -> object:
    """Send a statement whose rows are read from the stream that this returns.

    Raises:
        pymysql.MySQLError: the server refuses it.
    """
    connection._execute_command(COMMAND.COM_QUERY, sql)
    result = MySQLResult(connection)
    try:
        result.init_unbuffered_query()
    finally:
        # Otherwise the result would read to the end when it is collected.
        result.unbuffered_active = False
    return connection._rfile


def drop(connection: Connection) -> None:
    """Close a connection without waiting for the server; what reads from it fails."""
    with suppress(OSError, AttributeError):
        connection._sock.shutdown(socket.SHUT_RDWR)
    connection._force_close()


def kill(login: Mapping[str, str], thread: int) -> None:
    """End the statement of another connection."""
    with suppress(pymysql.MySQLError, OSError):
        connection = connect(login)
        try:
            run(connection, f"KILL QUERY {thread}")
        finally:
            drop(connection)


def packets(stream: object) -> Iterator[bytes]:
    """Yield the packets of rows, until the one that ends them.

    Raises:
        pymysql.MySQLError: the server ended the statement, or the connection.
    """
    while True:
        packet = _packet(stream)
        if packet[:1] == b"\xff":
            pymysql.err.raise_mysql_exception(packet)
        if packet[:1] == b"\xfe" and len(packet) < 9:
            return
        yield packet


def _packet(stream: Any) -> bytes:
    parts: list[bytes] = []
    while True:
        head = stream.read(4)
        size = int.from_bytes(head[:3], "little")
        body = stream.read(size)
        if len(head) < 4 or len(body) < size:
            raise pymysql.OperationalError(2013, "the connection ended")
        if size < 0xFFFFFF:
            return b"".join((*parts, body)) if parts else body
        parts.append(body)
