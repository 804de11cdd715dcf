"""Connections over drivers of ODBC, and the causes of their errors."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import arrow_odbc
import pyarrow as pa

from caraway_plugins.sources import driver_messages
from caraway_plugins.sources.foreign_dialects import SESSIONS

types = pa.types
FAILURES: tuple[type[Exception], ...] = (arrow_odbc.Error, pa.ArrowException)
"""The exceptions of a statement that fails."""
_LOGIN_S = 30
_STATE = re.compile(r"State: (\w{5})")
_SAID = re.compile(r"Message: (?:\[[^\]]*\])*(.*)", re.DOTALL)
_VALUES = re.compile(r"(?<![\w ])(?!driver\b)[\w ]+=(\{[^}]*\}|[^;]+)", re.IGNORECASE)
_AWAY = ("08", "57P", "HYT")
_LOST = re.compile(r"can't connect|connection refused|lost connection|gone away|server closed")
_SHORTEST_SECRET = 3
_NO_DRIVER = ("IM002", "IM003", "01000")
_EXACT_WIDTHS = frozenset({"postgresql"})
"""Dialects of databases whose integers are as wide as the driver says."""


class OdbcConnection:
    """A connection for one statement at a time."""

    def __init__(self, login: Mapping[str, str]) -> None:
        """Open it, and run the statements of the session.

        Raises:
            arrow_odbc.Error: there is no such driver, or the server refuses the login or is away.
        """
        self._login = login
        self._connection = arrow_odbc.connect(
            login["connection_string"].rstrip("; ") + ";",  # What is added has no sign before it.
            user=login.get("username"),
            password=login.get("password"),
            login_timeout_sec=_LOGIN_S,
        )
        for each in SESSIONS.get(login["dialect"], ()):
            self.begin(each)

    def begin(self, sql: str) -> Any:
        """Run a statement, and return its batches.

        Raises:
            arrow_odbc.Error: the server refuses it, or cannot be reached.
        """
        login = self._login
        timeout_s = login.get("query_timeout")
        return self._connection.read_arrow_batches(
            sql,
            batch_size=int(login["rows"]),
            max_bytes_per_batch=int(login["bytes"]),
            max_text_size=int(login["text"]),
            max_binary_size=int(login["binary"]),
            map_schema=self._bound,
            fetch_concurrently=False,
            query_timeout_sec=int(timeout_s) if timeout_s else None,
            payload_text_encoding=arrow_odbc.TextEncoding.UTF8,
        )

    def described(self, sql: str) -> pa.Schema:
        """Return the types of a statement's columns, by the driver. Raises the same."""
        found: list[pa.Schema] = []

        def noted(schema: pa.Schema) -> pa.Schema:
            found.append(schema)
            return self._bound(schema)

        self._connection.read_arrow_batches(
            sql, max_text_size=1, max_binary_size=1, map_schema=noted, fetch_concurrently=False
        )
        return found[0]

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Yield the few rows of a statement. Raises the same."""
        for batch in self.begin(sql):
            yield from batch.to_pylist()

    def _bound(self, schema: pa.Schema) -> pa.Schema:
        dialect = self._login["dialect"]
        return pa.schema([each.with_type(_bound(each.type, dialect)) for each in schema])


def _bound(type_: pa.DataType, dialect: str) -> pa.DataType:
    """Return the type in which a column is fetched, whatever the driver says that it is.

    Drivers take integers without a sign for those that have one, and sums for short ones. They
    round decimals of any number of digits, and say that doubles are floats. A binary value that is
    shorter than they say ends the process.
    """
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_floating(type_):
        return pa.float64()
    if types.is_decimal(type_):
        return pa.string()
    if types.is_integer(type_) and dialect not in _EXACT_WIDTHS:
        return pa.string() if type_.bit_width == 64 else pa.int64()
    return type_


def is_away(exc: BaseException) -> bool:
    """Return whether an error means that the server cannot be reached."""
    return _state(exc).startswith(_AWAY) or bool(_LOST.search(str(exc).lower()))


def is_refused(exc: BaseException) -> bool:
    """Return whether an error means that the server refuses the login or a right."""
    return driver_messages.is_refused(str(exc))


def is_without_driver(exc: BaseException) -> bool:
    """Return whether an error means that there is no such driver."""
    return _state(exc) in _NO_DRIVER and "river" in str(exc)


def message(exc: BaseException, login: Mapping[str, str]) -> str:
    """Return the message of the server in an error, without that of the driver and the login."""
    text = str(exc)
    said = _SAID.search(text)
    own = driver_messages.of_server(text) or (said[1] if said else text)
    values = [each.strip("{}") for each in _VALUES.findall(login["connection_string"])]
    given = [login[name] for name in ("username", "password") if name in login]
    secrets = [each for each in (*values, *given) if len(each) >= _SHORTEST_SECRET]
    return driver_messages.shown(own, secrets)


def _state(exc: BaseException) -> str:
    found = _STATE.search(str(exc))
    return found[1] if found else ""
