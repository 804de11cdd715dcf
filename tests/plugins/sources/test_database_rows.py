"""Rows of databases: the statement starts late, ends early, and fails with words for users."""

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_rows import DatabaseRows

SCHEMA = pa.schema([("id", pa.int64())])
TABLE = RemoteTable(SCHEMA, "rows", ("t",), (), {})


class GivenRows(DatabaseRows):
    """Reads given batches, or fails with what is given in their place."""

    failures = (RuntimeError,)
    stop_again_s = 0.01

    def __init__(self, *parts: Any) -> None:
        super().__init__(TABLE, "SELECT id FROM t", SCHEMA)
        self.parts = parts
        self.told: list[str] = []
        self.is_waiting, self.is_stopped = threading.Event(), threading.Event()

    def _begin(self) -> Iterator[Any]:
        self.told.append("begin")
        return self._read()

    def _read(self) -> Iterator[Any]:
        for part in self.parts:
            if part == "wait":
                self.is_waiting.set()
                assert self.is_stopped.wait(60)
                raise RuntimeError("stopped")
            if isinstance(part, Exception):
                raise part
            yield part

    def _stop(self) -> None:
        self.is_stopped.set()

    def _drop(self) -> None:
        self.told.append("drop")

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        return values.cast(type_)


def batch(*values: object) -> pa.RecordBatch:
    return pa.record_batch({"value": list(values)})


def test_the_statement_starts_with_the_first_read_and_is_dropped_at_the_end() -> None:
    rows = GivenRows(batch("1"), batch("2", "3"))
    assert rows.told == []
    assert [each.to_pylist() for each in rows] == [[{"id": 1}], [{"id": 2}, {"id": 3}]]
    assert rows.told == ["begin", "drop"]


def test_nothing_is_read_after_the_close() -> None:
    rows = GivenRows(batch(1), batch(2))
    reading = iter(rows)
    next(reading)
    rows.close()
    assert list(reading) == []
    assert rows.told[:2] == ["begin", "drop"]


def test_close_stops_a_read_that_waits_for_the_database() -> None:
    rows = GivenRows("wait")
    errors: list[BaseException] = []

    def read() -> None:
        try:
            list(rows)
        except ExecutionError as exc:
            errors.append(exc)

    thread = threading.Thread(target=read)
    thread.start()
    assert rows.is_waiting.wait(60)
    rows.close()
    thread.join(60)
    assert rows.is_stopped.is_set() and len(errors) == 1


def test_a_failure_names_the_table_and_says_what_to_do() -> None:
    rows = GivenRows(batch(1), RuntimeError("password=secret"))
    with pytest.raises(ExecutionError, match="cannot be read: the database failed") as caught:
        list(rows)
    assert TABLE.title in caught.value.message and rows.advice in caught.value.message
    assert "secret" not in caught.value.message
    assert rows.told == ["begin", "drop"]


@pytest.mark.parametrize("said", ["bigint out of range", "Arithmetic OVERFLOW error"])
def test_a_number_that_is_too_large_says_how_to_avoid_it(said: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"overflow: .*cast what is computed"):
        list(GivenRows(RuntimeError(said)))


def test_a_value_that_does_not_fit_names_its_column() -> None:
    with pytest.raises(InvalidQueryError, match="a value of column 'id' is not a int64"):
        list(GivenRows(batch("many")))
