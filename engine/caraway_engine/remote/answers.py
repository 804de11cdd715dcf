"""Answers of databases as tables of the engine, and the reads behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import cast

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion.catalog import Table

from caraway_core.loading import registry
from caraway_core.protocols.remote import (
    RemoteChanger,
    RemoteCreator,
    RemoteMerger,
    RemoteReader,
    RemoteReplacer,
    RemoteRows,
    RemoteWriter,
)
from caraway_core.work import SourceQuery
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.remote.scanning import RowScan

_readers: dict[str, RemoteReader] = {}


def read(answer: SourceQuery) -> RemoteRows:
    """Return the rows of an answer. The statement is sent when the first row is read."""
    return reader(answer.table.reader).read(answer.table, answer.sql, answer.schema)


def reader(name: str) -> RemoteReader:
    """Return the reader of a kind of table. One reader serves the process and keeps connections."""
    if name not in _readers:
        made = registry.load_reader(name)
        _readers.setdefault(name, made())
    return _readers[name]


def writer(name: str) -> RemoteWriter | None:
    """Return the reader of a kind of table, if it also inserts rows."""
    is_writable = registry.database_reader(name).is_writable
    return cast("RemoteWriter", reader(name)) if is_writable else None


def changer(name: str) -> RemoteChanger | None:
    """Return the reader of a kind of table, if it also updates and deletes rows."""
    is_changeable = registry.database_reader(name).is_changeable
    return cast("RemoteChanger", reader(name)) if is_changeable else None


def merger(name: str) -> RemoteMerger | None:
    """Return the reader of a kind of table, if it also merges rows."""
    is_merging = registry.database_reader(name).is_merging
    return cast("RemoteMerger", reader(name)) if is_merging else None


def replacer(name: str) -> RemoteReplacer | None:
    """Return the reader of a kind of table, if it also replaces rows by their places."""
    is_replacing = registry.database_reader(name).is_replacing
    return cast("RemoteReplacer", reader(name)) if is_replacing else None


def creator(name: str) -> RemoteCreator | None:
    """Return the reader of a kind of table, if it also creates and drops tables."""
    is_creating = registry.database_reader(name).is_creating
    return cast("RemoteCreator", reader(name)) if is_creating else None


def use(name: str, reader: RemoteReader) -> None:
    """Use this reader for tables of a kind from now on."""
    _readers[name] = reader


def table(dataset: "AnswerDataset") -> Table:
    """Return an answer as a table of the engine."""
    return Table(dataset)


class AnswerReading:
    """One read of an answer. Its methods block; any thread may call `close`."""

    def __init__(self, answer: SourceQuery) -> None:
        self._answer = answer
        self._rows: RemoteRows | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._first: list[pa.RecordBatch] = []
        self._is_closed = False
        self._lock = Lock()

    def send_statement(self) -> None:
        """Send the statement to the database, and wait for the first rows."""
        if self._rows is None:
            rows = read(self._answer)
            with self._lock:
                if self._is_closed:
                    return
                self._rows = rows
            self._batches = iter(rows)
            self._first = [batch for batch in (next(self._batches, None),) if batch is not None]

    def next(self) -> pa.RecordBatch | None:
        """Return the next batch, or None at the end."""
        self.send_statement()
        return self._first.pop() if self._first else next(self._batches, None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.next()) is not None:
            yield batch

    def close(self) -> None:
        """Cancel the statement if it is running."""
        with self._lock:
            self._is_closed = True
            rows = self._rows
        if rows is not None:
            rows.close()


class AnswerDataset(ds.InMemoryDataset):  # type: ignore[misc] # pyarrow is untyped to us
    """A pyarrow dataset whose rows are an answer. Each further scan sends the statement again."""

    def __init__(self, answer: SourceQuery) -> None:
        super().__init__(answer.schema.empty_table())
        self.reading = AnswerReading(answer)
        self._answer = answer
        self._is_taken = False
        self._lock = Lock()

    def get_fragments(self, filter: object = None) -> Iterator["AnswerDataset"]:
        """Return this dataset as its only fragment."""
        return iter([self])

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: object = None,
        **_options: object,
    ) -> RowScan:
        """Return a scan of the rows that pass the filter, with the requested columns."""
        names = tuple(self.schema.names if columns is None else columns)
        return RowScan(
            self.schema, names, _Rows(self, LocalCondition.from_filter(filter)), OpenedReads()
        )

    def taken(self) -> AnswerReading:
        """Return a read that is not taken yet."""
        # Threads of the engine may scan at once; two that share a read would each miss rows.
        with self._lock:
            reading = AnswerReading(self._answer) if self._is_taken else self.reading
            self._is_taken = True
        return reading


@dataclass(frozen=True, slots=True)
class _Rows:
    dataset: AnswerDataset
    left: LocalCondition
    query: None = None

    def begin_rows(self, reads: OpenedReads) -> AnswerReading:
        return self.dataset.taken()
