"""Inserts rows into MySQL and MariaDB, in one transaction."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pymysql

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts
from caraway_plugins.sources.mysql import connecting

_STOP_AGAIN_S = 0.2
_MOST_BYTES = 512 * 1024
"""The usual size of a statement: a server may refuse those of more than 1 MB."""
_SESSION = (
    "SET SESSION TRANSACTION READ WRITE",
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
)
"""A value that does not fit is an error, and a backslash in a text is none but itself."""
_OF_VALUES = frozenset({1048, 1062, 1264, 1292, 1364, 1366, 1406, 1452, 1526, 3819, 4025})
_OF_RIGHTS = frozenset({1044, 1045, 1142, 1143, 1227, 1288, 1290, 1471, 1698, 1792, 1836})
_CHANGED = frozenset({1049, 1054, 1146})
_KEEPS_ROWS = 1196
"""The warning that a table without transactions could not be rolled back."""
types = pa.types


class MysqlInsert:
    """An INSERT as statements of many rows each."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        self._table, self._columns = table, columns
        self._connection: Any = None
        self._running = threading.Lock()
        self._is_closed = False

    def run(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.run`."""
        written_texts.check(self._table, self._columns)
        is_ending = False
        with self._running:
            try:
                self._connection = connecting.connect(self._table.login)
                for each in (*_SESSION, "BEGIN"):
                    connecting.run(self._connection, each)
                count = sum(self._sent(batch) for batch in rows)
                if self._is_closed:
                    raise pymysql.OperationalError(2013, "stopped")
                is_ending = True
                connecting.run(self._connection, "COMMIT")
                return count
            except (pymysql.MySQLError, OSError) as exc:
                is_kept = not is_ending and self._rolled_back()
                raise _error(self._table, exc, is_ending=is_ending, is_kept=is_kept) from exc
            except BaseException as exc:
                if self._rolled_back():
                    raise ExecutionError(
                        f"INSERT into {self._table.title} failed, and {_SOME_LEFT}"
                    ) from exc
                raise
            finally:
                if self._connection is not None:
                    connecting.drop(self._connection)

    def close(self) -> None:
        """See `RemoteInsert.close`."""
        self._is_closed = True
        while not self._running.acquire(timeout=_STOP_AGAIN_S):
            connection = self._connection
            if connection is not None:
                connecting.kill(self._table.login, connection.thread_id())
        self._running.release()

    def _sent(self, batch: pa.RecordBatch) -> int:
        written_texts.check_numbers(self._table, batch, has_infinity=False)
        names = ", ".join(map(_quoted, batch.schema.names))
        begin = f"INSERT INTO {'.'.join(map(_quoted, self._table.relation))} ({names}) VALUES "
        for part in _parts(_values(batch)):
            connecting.run(self._connection, begin + ",".join(part))
        return int(batch.num_rows)

    def _rolled_back(self) -> bool:
        """Return whether rows stay in a table that has no transactions."""
        with suppress(pymysql.MySQLError, OSError, AttributeError):
            connecting.run(self._connection, "ROLLBACK")
            warnings = connecting.run(self._connection, "SHOW WARNINGS")
            return any(code == _KEEPS_ROWS for _level, code, _text in warnings)
        return False


def _values(batch: pa.RecordBatch) -> list[str]:
    if not batch.num_rows:
        return []
    columns = [pc.fill_null(_literals(each), "NULL") for each in batch.columns]
    rows: list[str] = pc.binary_join_element_wise("(", *_commas(columns), ")", "").to_pylist()
    return rows


def _commas(columns: list[pa.Array]) -> Iterator[Any]:
    for number, each in enumerate(columns):
        if number:
            yield ","
        yield each


def _literals(array: pa.Array) -> pa.Array:
    type_ = array.type
    texts = written_texts.of(array, lambda value: f"x'{value.hex()}'")
    if types.is_floating(type_):  # Without an exponent, it would be a decimal.
        return pc.if_else(
            pc.match_substring(texts, "e"), texts, pc.binary_join_element_wise(texts, "e0", "")
        )
    if types.is_binary(type_) or types.is_boolean(type_) or types.is_integer(type_):
        return texts
    doubled = pc.replace_substring(texts, "'", "''")
    return pc.binary_join_element_wise("'", doubled, "'", "")


def _parts(rows: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for each in rows:
        if part and size + len(each) > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += len(each)
    if part:
        yield part


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


_SOME_LEFT = "rows that were inserted are still there: the table has no transactions"


def _error(table: RemoteTable, exc: Exception, *, is_ending: bool, is_kept: bool) -> QueryError:
    """Convert an error of the client; neither the statement nor the host is shown."""
    code = exc.args[0] if exc.args else None
    is_lost = not isinstance(code, int) or isinstance(exc, OSError) or code in range(2000, 2100)
    if is_ending and is_lost:
        return ExecutionError(
            f"INSERT into {table.title}: the connection failed while the rows were committed; look "
            "whether they are there before you insert them again"
        )
    left = _SOME_LEFT if is_kept else "no row was inserted"
    if code in _OF_VALUES:
        return (
            written_texts.refused(table, str(exc.args[1]))
            if not is_kept
            else ExecutionError(f"INSERT into {table.title} failed: {exc.args[1]}; {left}")
        )
    if code in _OF_RIGHTS:
        reason = "the server refuses the login, or the user may not insert"
    elif code in _CHANGED:
        reason = "it is not what it was when it was loaded"
    elif is_lost:
        reason = "the connection failed"
    else:
        reason = f"the server failed with error {code}"
    return ExecutionError(f"INSERT into {table.title} failed: {reason}; {left}")
