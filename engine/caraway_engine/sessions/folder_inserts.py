"""INSERTs into folders of files: all rows are computed first, and are then written as one file.

The engine finishes its files also when the rows of a statement fail, so that the folder would have
a part of them. Files of folders appear as a whole, on disk and in object stores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from caraway_core.errors import ExecutionError
from caraway_engine.rows import plain

_MOST_HELD_BYTES = 16 * 1024 * 1024
"""Rows of a larger statement wait on disk."""
_CODEC = "lz4"
_STOPPED = "the statement was stopped; no row was inserted"


class InsertingFiles:
    """An INSERT under way. See `Writing`."""

    def __init__(
        self, start: Callable[[], Any], insert: Callable[[object], int], folder: Path | None
    ) -> None:
        """Take what starts the rows, what inserts a DataFrame, and where rows wait."""
        self._start = start
        self._insert = insert
        self._folder = folder
        self._is_closed = False

    def write_rows(self) -> int:
        """Insert the rows, and return their number."""
        with WaitingRows.made(self._folder) as waiting:
            for batch in self._start():
                self._check_open()
                waiting.add(batch.to_pyarrow())
            rows = waiting.finish()
            self._check_open()
            return 0 if rows is None else self._insert(rows)

    def close(self) -> None:
        """Stop it, unless its rows are being written."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise ExecutionError(_STOPPED)


class WaitingRows:
    """Rows that wait until all are there: in memory, or in a file if they are many."""

    def __init__(self, path: Path) -> None:
        """Take where the file is made."""
        self._path = path
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    @classmethod
    @contextmanager
    def made(cls, folder: Path | None) -> Iterator[WaitingRows]:
        """Yield a place for rows, which is removed after the block."""
        with tempfile.TemporaryDirectory(prefix="insert-", dir=folder) as made:
            waiting = cls(Path(made) / "rows.arrow")
            try:
                yield waiting
            finally:
                waiting.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if not batch.num_rows:
            return
        batch = plain.plain_batch(batch, _waiting(batch.schema))
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > _MOST_HELD_BYTES:
            self._store()

    def finish(self) -> object:
        """Return the rows as a DataFrame; None: there are none."""
        context = SessionContext()
        if self._writer is None:
            return context.create_dataframe([self._held]) if self._held else None
        self._store()
        self._writer.close()
        return context.read_arrow(self._path)

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def _store(self) -> None:
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression=_CODEC)
            self._writer = pa.ipc.new_file(self._path, self._held[0].schema, options=options)
        for each in self._held:
            self._writer.write_batch(each)
        self._held, self._held_bytes = [], 0


def _waiting(schema: pa.Schema) -> pa.Schema:
    """Return the schema without views, and without dictionaries, which differ between batches."""
    return pa.schema([_without_dictionary(each) for each in plain.plain_schema(schema)])


def _without_dictionary(field: pa.Field) -> pa.Field:
    is_dictionary = pa.types.is_dictionary(field.type)
    return field.with_type(field.type.value_type) if is_dictionary else field
