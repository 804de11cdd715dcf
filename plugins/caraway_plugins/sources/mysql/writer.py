"""Writes to tables of MySQL and MariaDB, each statement in one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pymysql

from caraway_core.protocols.remote import Assignment, TableChange
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts
from caraway_plugins.sources.database_writes import (
    DatabaseChange,
    DatabaseInsert,
    DatabaseWrite,
    Reason,
)
from caraway_plugins.sources.mysql import connecting

_MOST_BYTES = 512 * 1024
"""The usual size of a statement: a server may refuse those of more than 1 MB."""
_SESSION = (
    "SET SESSION TRANSACTION READ WRITE",
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
)
"""A value that does not fit is an error, and a backslash in a text is none but itself."""
_OF_VALUES = frozenset({1048, 1062, 1264, 1292, 1364, 1366, 1406, 1452, 1526, 1690, 3819, 4025})
_OF_RIGHTS = frozenset({1044, 1045, 1142, 1143, 1227, 1288, 1290, 1471, 1698, 1792, 1836})
_OF_TABLES = {
    1007: "a database of this name is there",
    1049: "the server has no database of this name",
    1050: "a table or view with this name is there",
    1051: "it is a view, or is gone",
    1071: "its primary key is too long",
    1118: "its rows are too large",
    1170: "a primary key has no text of any length or bytes; name another one",
    1347: "it is a view",
    1451: "rows of other tables depend on it",
    3730: "rows of other tables depend on it",
    4092: "it is a view",
}
_CHANGED = frozenset({1054, 1146})
_KEEPS_ROWS = 1196
"""The warning that a table without transactions could not be rolled back."""
types = pa.types


class MysqlWrite(DatabaseWrite):
    """A statement that writes to a table of MySQL."""

    failures = (pymysql.MySQLError, OSError)

    def _begin(self) -> None:
        self._connection = connecting.connect(self._table.login)
        for each in (*_SESSION, "BEGIN"):
            self._run(each)

    def _commit(self) -> None:
        connecting.run(self._connection, "COMMIT")

    def _run(self, sql: str) -> None:
        connecting.run(self._connection, sql)

    @property
    def _target(self) -> str:
        return ".".join(map(quoted, self._table.relation))

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            connecting.kill(self._table.login, connection.thread_id())

    def _drop(self) -> None:
        if self._connection is not None:
            connecting.drop(self._connection)

    def _is_lost(self, exc: Exception) -> bool:
        code = _code(exc)
        is_known = isinstance(code, int) and not isinstance(exc, OSError)
        return not is_known or code in range(2000, 2100)

    def _keeps_rows(self) -> bool:
        with suppress(pymysql.MySQLError, OSError, AttributeError):
            connecting.run(self._connection, "ROLLBACK")
            warnings = connecting.run(self._connection, "SHOW WARNINGS")
            return any(code == _KEEPS_ROWS for _level, code, _text in warnings)
        return False

    def _reason(self, exc: Exception) -> Reason:
        # Neither the statement nor the host is shown.
        code = _code(exc)
        if code in _OF_VALUES:
            return Reason(str(exc.args[1]), is_of_values=True)
        if code in _OF_TABLES:
            return Reason(_OF_TABLES[code], is_of_values=True)
        if code in _OF_RIGHTS:
            return Reason("the server refuses the login, or the user may not write")
        if code in _CHANGED:
            return Reason("it is not what it was when it was loaded")
        if self._is_lost(exc):
            return Reason("the connection failed")
        return Reason(f"the server failed with error {code}")


class MysqlInsert(MysqlWrite, DatabaseInsert):
    """An INSERT as statements of many rows each."""

    def _inserted(self, rows: Iterator[pa.RecordBatch]) -> int:
        return sum(map(self._sent, rows))

    def _sent(self, batch: pa.RecordBatch) -> int:
        written_texts.check_numbers(batch, self._refused, has_infinity=False)
        names = ", ".join(map(quoted, batch.schema.names))
        begin = f"INSERT INTO {self._relation} ({names}) VALUES "
        for part in _parts(_values(batch)):
            connecting.run(self._connection, begin + ",".join(part))
        return int(batch.num_rows)


class MysqlChange(MysqlWrite, DatabaseChange):
    """An UPDATE or DELETE. MySQL sets one column after the other, and reads those that are set."""

    def __init__(self, table: RemoteTable, change: TableChange) -> None:
        super().__init__(table, change)
        self._ordered = _in_order(change.assigned)
        if len(self._ordered) < len(change.assigned):
            raise self._refused(
                "MySQL sets columns one after the other, so columns that are set to each other "
                "would not be exchanged; use several statements"
            )

    def _changed(self) -> int:
        row = self._values()
        written_texts.check(row.schema, self._refused)
        written_texts.check_numbers(row, self._refused, has_infinity=False)
        values = {
            field.name: _literals(array)[0].as_py() or "NULL"
            for array, field in zip(row.columns, row.schema, strict=True)
        }
        assigned = (f"{quoted(each.column)} = {each.sql or values[each.column]}"
                    for each in self._ordered)  # fmt: skip
        with self._connection.cursor() as cursor:
            return int(cursor.execute(self._sql(self._relation, assigned)))


def _in_order(assigned: Sequence[Assignment]) -> list[Assignment]:
    """Return assignments so that each reads columns before they are set; not those in a circle."""
    left, ordered = list(assigned), list[Assignment]()
    while left:
        free = next((each for each in left if not _is_read(each, left)), None)
        if free is None:
            return ordered
        left.remove(free)
        ordered.append(free)
    return ordered


def _is_read(each: Assignment, others: Sequence[Assignment]) -> bool:
    return any(each.column in other.reads for other in others if other is not each)


def _code(exc: Exception) -> object:
    return exc.args[0] if exc.args else None


def _values(batch: pa.RecordBatch) -> list[str]:
    if not batch.num_rows:
        return []
    columns = [pc.fill_null(_literals(each), "NULL") for each in batch.columns]
    rows: list[str] = pc.binary_join_element_wise("(", *_commas(columns), ")", "").to_pylist()
    return rows


def _commas(columns: list[pa.Array]) -> Iterator[object]:
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


def quoted(name: str) -> str:
    """Return a name as it is written in statements."""
    return "`" + name.replace("`", "``") + "`"
