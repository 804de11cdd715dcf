"""Datasets over drivers of ADBC, and the statements that a server of PostgreSQL runs."""

from pathlib import Path
from typing import Any

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from tests.kit.deadlines import until
from tests.kit.flight_sql_server import LOGIN, FlightSqlServer
from tests.kit.postgres import Server


def request(path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table."""
    root = Path("/")
    return SourceRequest(TableName("t"), "adbc", path, params, (), "read", root, root)


def postgres_uri(server: Server, user: str = "postgres") -> str:
    """Return the address of a server of the tests."""
    return f"postgresql:///postgres?host={server.params['pg_host']}&user={user}"


def of_postgres(server: Server, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of a server."""
    return request(
        path, **{"adbc_driver": "postgresql", "adbc_uri": postgres_uri(server), **params}
    )


def of_flight_sql(server: FlightSqlServer, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of a Flight SQL server."""
    login = {
        "adbc_driver": "flightsql",
        "adbc_uri": server.uri.replace("grpc://", "grpc+tcp://"),
        "adbc_username": LOGIN["flightsql_username"],
        "adbc_password": LOGIN["flightsql_password"],
        "adbc_dialect": "standard",
    }
    return request(path, **{**login, **params})


def wait_until_running(server: Server, sign: str) -> None:
    """Wait until the server runs a statement with this text."""
    until(lambda: bool(_running(server, sign)), "the statement runs")


def wait_until_idle(server: Server, sign: str) -> None:
    """Wait until the server runs no statement with this text."""
    until(lambda: not _running(server, sign), "the statement ends")


def _running(server: Server, sign: str) -> Any:
    return server.rows(
        "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
        f"AND query LIKE '%{sign}%'"
    )
