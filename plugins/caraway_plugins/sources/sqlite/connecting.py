"""Opens SQLite files, to read from them or to write to them."""

import re
from pathlib import Path
from typing import Any

from adbc_driver_sqlite import dbapi as sqlite

_BUSY_MS = 2_000
"""For so long a statement waits for another process that writes."""
_SETTINGS = (f"PRAGMA busy_timeout = {_BUSY_MS}", "PRAGMA trusted_schema = OFF")

_OPENED = re.compile("failed to open '.*'", re.DOTALL)
LOCKED = "is locked"
"""What SQLite says while another process writes."""


def connect(path: str) -> Any:
    """Open a file to read from it. Views of the file use no function that could do harm.

    Raises:
        dbapi.Error: it cannot be opened.
    """
    connection = sqlite.connect(f"{Path(path).as_uri()}?mode=ro", autocommit=True)
    run(connection, *_SETTINGS)
    return connection


def connect_to_write(path: str) -> object:
    """Open a file to write to it, in a transaction that ends with a commit.

    Raises:
        dbapi.Error: it cannot be opened.
    """
    connection = sqlite.connect(f"{Path(path).as_uri()}?mode=rw", autocommit=False)
    run(connection, *_SETTINGS)
    return connection


def said(exc: Exception) -> str:
    """Return what SQLite says, without the statement and the file, whose names may say anything."""
    return _OPENED.sub("failed to open", str(exc).partition("\nquery: ")[0])


def run(connection: Any, *statements: str) -> None:
    """Run statements without rows."""
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
