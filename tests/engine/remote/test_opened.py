"""Reads of databases end with the plan that they belong to."""

import contextvars
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_core.work import SourceQuery
from caraway_engine.remote import opened
from caraway_engine.remote.opened import OpenedReads

SCHEMA = pa.schema([("id", pa.int64())])
TABLE = RemoteTable(SCHEMA, "fake", ("t",), (RemoteColumn("id", pa.int64(), True),), {})


class Rows:
    """Rows that count how often they were closed, and may fail then."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed = 0
        self._error = error

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(())

    def close(self) -> None:
        self.closed += 1
        if self._error is not None:
            raise self._error


def test_all_reads_are_closed_once() -> None:
    reads, all_rows = OpenedReads(), [Rows() for _ in range(5)]
    assert all(reads.add(each) for each in all_rows)
    reads.close()
    reads.close()
    assert [each.closed for each in all_rows] == [1] * 5


def test_a_read_that_cannot_be_closed_leaves_no_other_open() -> None:
    reads = OpenedReads()
    all_rows = [Rows(), Rows(OSError("gone")), Rows(), Rows(OSError("lost")), Rows()]
    for each in all_rows:
        reads.add(each)
    with pytest.raises(OSError, match=r"gone|lost"):
        reads.close()
    assert [each.closed for each in all_rows] == [1] * 5


def test_no_read_begins_after_the_end() -> None:
    reads = OpenedReads()
    reads.close()
    late = Rows()
    assert not reads.add(late)
    reads.close()
    assert late.closed == 0


def test_a_read_that_begins_while_others_end_is_closed_or_refused() -> None:
    for _ in range(200):
        reads, late = OpenedReads(), Rows()
        ready = threading.Barrier(2)
        answers: list[bool] = []

        def add(
            reads: OpenedReads = reads,
            late: Rows = late,
            ready: threading.Barrier = ready,
            answers: list[bool] = answers,
        ) -> None:
            ready.wait()
            answers.append(reads.add(late))

        other = threading.Thread(target=add)
        other.start()
        ready.wait()
        reads.close()
        other.join()
        assert late.closed == int(answers[0])


def test_a_statement_that_is_planned_twice_is_told_once() -> None:
    reads = OpenedReads()
    one, two = (SourceQuery(TABLE, f"SELECT {n}", SCHEMA) for n in (1, 2))
    for each in (one, two, one, SourceQuery(TABLE, "SELECT 1", SCHEMA)):
        reads.plan(each)
    assert reads.planned == [one, two]


def test_scans_record_their_reads_where_their_plan_is_started() -> None:
    outer, inner = OpenedReads(), OpenedReads()
    assert opened.current() is not opened.current()
    with opened.noted(outer):
        with opened.noted(inner):
            assert opened.current() is inner
        assert opened.current() is outer
        seen: list[OpenedReads] = []
        copied = contextvars.copy_context()
        thread = threading.Thread(target=lambda: seen.append(copied.run(opened.current)))
        thread.start()
        thread.join()
        assert seen == [outer]
    assert opened.current() is not outer


def test_what_was_noted_is_forgotten_after_an_error() -> None:
    reads = OpenedReads()
    with pytest.raises(ZeroDivisionError), opened.noted(reads):
        raise ZeroDivisionError
    assert opened.current() is not reads
