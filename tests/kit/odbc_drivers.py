"""Datasets over drivers of ODBC, as Debian has them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from tests.kit.mariadb import DATABASE, Mariadb
from tests.kit.postgres import Server

_PACKAGES = {
    "SQLite3": "libsqliteodbc",
    "PostgreSQL Unicode": "odbc-postgresql",
    "MariaDB Unicode": "odbc-mariadb",
}


def require(driver: str) -> None:
    """Skip the test where a driver is not installed."""
    program = shutil.which("odbcinst")
    command = [program or "", "-q", "-d", "-n", driver]
    if program is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip(
            f"NOT TESTED: the driver '{driver}' is missing: apt-get install unixodbc "
            f"{_PACKAGES[driver]}"
        )


def request(path: str, connection_string: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table."""
    root = Path("/")
    given = {"odbc_connection_string": connection_string, **params}
    return SourceRequest(TableName("t"), "odbc", path, given, (), "read", root, root)


def of_postgres(server: Server, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of PostgreSQL."""
    require("PostgreSQL Unicode")
    place = f"Server={server.params['pg_host']};Database=postgres;Uid=postgres;BoolsAsChar=0"
    return request(path, f"Driver={{PostgreSQL Unicode}};{place}", **params)


def of_mariadb(server: Mariadb, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of MariaDB."""
    require("MariaDB Unicode")
    place = f"Socket={server.socket};Database={DATABASE};Uid=root"
    return request(path, f"Driver={{MariaDB Unicode}};{place}", **params)


def of_sqlite(file: Path, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of a SQLite file."""
    require("SQLite3")
    return request(path, f"Driver={{SQLite3}};Database={file}", **params)
