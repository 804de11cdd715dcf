"""Clients of ClickHouse servers over HTTP, and the causes of their errors."""

import io
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError
from urllib3.exceptions import HTTPError

FAILURES: tuple[type[Exception], ...] = (ClickHouseError, HTTPError, pa.ArrowException, OSError)
"""The exceptions of a statement that fails."""
_SETTINGS = {
    "aggregate_functions_null_for_empty": 1,
    "join_use_nulls": 1,
    "enable_positional_arguments": 0,
    "prefer_column_name_to_alias": 1,
    "transform_null_in": 0,
    "count_distinct_implementation": "uniqExact",
    "decimal_check_overflow": 1,
    "output_format_arrow_string_as_string": 1,
    "output_format_arrow_low_cardinality_as_dictionary": 0,
}
"""What answers and their form depend on, whatever the profile of the user says."""
_STILL_S = 3_600
_LAST = b"\xff\xff\xff\xff\0\0\0\0"
"""The end of a stream of Arrow. A stream that stops before lacks rows."""
_CODE = re.compile(r"[Cc]ode: (\d+)")
_SAID = re.compile(
    r"DB::Exception: (.*?)(?: In scope .*|: While .*)?(?: \(([A-Z_]+)\))?(?: \(.*)?$"
)
_REFUSED = (192, 193, 194, 497, 516)
_ABSENT = (60, 81)
_TOO_LARGE = (70, 407)
_READ_ONLY = 164


class ArrowBody(io.RawIOBase):
    """An answer that has to end as a stream of Arrow does."""

    def __init__(self, answer: Any) -> None:
        """Take what reads the answer."""
        self._answer = answer
        self._tail = b""

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`; an end in the middle of an answer is an `OSError`."""
        content = self._answer.read(len(buffer))
        if content:
            self._tail = (self._tail + content)[-len(_LAST) :]
        elif self._tail != _LAST:
            raise OSError("the answer ended before its rows did")
        buffer[: len(content)] = content
        return len(content)


class ClickhouseConnection:
    """A client for one statement at a time."""

    def __init__(self, login: Mapping[str, str]) -> None:
        """Connect, and look at the server's version.

        Raises:
            ClickHouseError: the server refuses the login, or cannot be reached.
        """
        self._client = _client(login)
        self._answer: Any = None
        self._query = ""

    def begin(self, sql: str) -> pa.RecordBatchReader:
        """Run a statement, and return its rows.

        Raises:
            ClickHouseError: the server refuses it, or cannot be reached.
        """
        self._query = str(uuid.uuid4())
        settings = {**_SETTINGS, "query_id": self._query}
        self._answer = self._client.raw_stream(sql, settings=settings, fmt="ArrowStream")
        return pa.ipc.open_stream(io.BufferedReader(ArrowBody(self._answer), 1024 * 1024))

    def rows(self, sql: str) -> Sequence[Mapping[str, Any]]:
        """Return the few rows of a statement. Raises the same."""
        found: list[Mapping[str, Any]] = self.begin(sql).read_all().to_pylist()
        return found

    def kill(self) -> None:
        """Stop the statement at the server, over another connection; any thread may call it."""
        if self._query:
            with suppress(*FAILURES):
                self._client.raw_query(f"KILL QUERY WHERE query_id = '{self._query}' ASYNC")

    def end(self) -> None:
        """Let go of the answer, which was read to its end."""
        answer, self._answer, self._query = self._answer, None, ""
        if answer is not None:
            with suppress(*FAILURES):
                answer.close()

    def close(self) -> None:
        """Close the connection; the server ends a statement that it runs on it."""
        self.end()
        with suppress(*FAILURES):
            self._client.close()


def _client(login: Mapping[str, str]) -> Any:
    return clickhouse_connect.get_client(
        host=login["host"],
        port=int(login["port"]),
        username=login["user"],
        password=login["pass"],
        database=login["db"],
        secure=login["secure"] == "true",
        connect_timeout=float(login["connect_s"]),
        send_receive_timeout=_STILL_S,
        autogenerate_session_id=False,
        query_retries=0,
        compress=False,
        dedicated_pool=True,
    )


def code(exc: BaseException) -> int:
    """Return the number of the server's error, or 0."""
    found = _CODE.search(str(exc))
    return int(found[1]) if found else 0


def is_away(exc: BaseException) -> bool:
    """Return whether an error means that the server cannot be reached."""
    is_other = not isinstance(exc, ClickHouseError) or isinstance(exc, OperationalError)
    return is_other and not code(exc)


def is_refused(exc: BaseException) -> bool:
    """Return whether an error means that the server refuses the login or a right."""
    return code(exc) in _REFUSED


def is_absent(exc: BaseException) -> bool:
    """Return whether an error means that there is no such table."""
    return code(exc) in _ABSENT


def is_overflow(exc: BaseException) -> bool:
    """Return whether an error means that a number is too large."""
    return code(exc) in _TOO_LARGE


def reason(exc: BaseException) -> str:
    """Return what of an error is shown: neither the statement nor the host."""
    if code(exc) == _READ_ONLY:
        return "its user may not change settings: give the profile readonly = 2 in place of 1"
    found = _SAID.search(str(exc).splitlines()[0] if str(exc) else "")
    name = found[2] if found and found[2] else ""
    return f"the server failed with error {code(exc)}{f' ({name})' if name else ''}"
