"""Rows are read over kept connections, and over new ones where kept ones turn out broken."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.pooled_rows import PooledReader, PooledRows
from tests.kit.clocks import Clock

SCHEMA = pa.schema([("id", pa.int64())])
TABLE = RemoteTable(SCHEMA, "kept", ("t",), (), {"user": "one"})
BATCH = pa.record_batch({"id": [1, 2]})


class Broken(Exception):
    """The connection is lost."""


class Line:
    """A connection; statements over one that is lost fail."""

    def __init__(self) -> None:
        self.is_lost = self.is_closed = False
        self.statements: list[str] = []

    def close(self) -> None:
        self.is_closed = True


class LineRows(PooledRows):
    failures = (Broken, ValueError)
    opened: list[Line]

    def _connect(self) -> Line:
        self.opened.append(Line())
        return self.opened[-1]

    def _run(self) -> Iterator[Any]:
        self._connection.statements.append(self._sql)
        if self._connection.is_lost:
            raise Broken
        if self._sql == "wrong":
            raise ValueError
        return iter([BATCH])

    def _is_broken(self, exc: Exception) -> bool:
        return isinstance(exc, Broken)

    def _stop(self) -> None: ...

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        return values


class LineReader(PooledReader):
    rows = LineRows


@pytest.fixture
def reader() -> LineReader:
    LineRows.opened = []
    return LineReader(Clock())


def read(reader: LineReader, sql: str = "SELECT 1") -> list[pa.RecordBatch]:
    return list(reader.read(TABLE, sql, SCHEMA))


def test_the_next_statement_uses_the_same_connection(reader: LineReader) -> None:
    assert read(reader) == read(reader, "SELECT 2") == [BATCH]
    (line,) = LineRows.opened
    assert line.statements == ["SELECT 1", "SELECT 2"] and not line.is_closed


def test_a_kept_connection_that_is_lost_is_replaced(reader: LineReader) -> None:
    read(reader)
    LineRows.opened[0].is_lost = True
    assert read(reader) == [BATCH]
    first, second = LineRows.opened
    assert first.is_closed and not second.is_closed


def test_a_statement_that_is_wrong_is_not_tried_over_another_one(reader: LineReader) -> None:
    read(reader)
    with pytest.raises(ExecutionError, match="cannot be read: the database failed"):
        read(reader, "wrong")
    (line,) = LineRows.opened
    assert line.is_closed and line.statements[1:] == ["wrong"]


def test_a_statement_that_is_not_read_to_its_end_closes_its_connection(reader: LineReader) -> None:
    rows = reader.read(TABLE, "SELECT 1", SCHEMA)
    next(iter(rows))
    rows.close()
    assert LineRows.opened[0].is_closed
    read(reader)
    assert len(LineRows.opened) == 2


def test_closing_the_reader_closes_what_is_idle(reader: LineReader) -> None:
    read(reader)
    reader.close()
    assert LineRows.opened[0].is_closed
