"""Exports rows of statements as Parquet files, which executors write where they make the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import MOST_CHUNK_BYTES, StoreOrder
from caraway_core.statements import Statement
from caraway_core.tables import FileScan, FilesTable, ResultPlace
from caraway_plugins.iceberg import written_types
from caraway_plugins.stores import parquet
from caraway_scheduler.queries import storing

_KEY = "data"
_FIRST_ROWS = 100_000


def all_rows(name: TableName) -> str:
    """Return the statement that reads a whole table or view."""
    return f"SELECT * FROM {quoted(name)}"


def quoted(name: TableName) -> str:
    """Return a name of the manifest as SQL."""
    return ".".join(f'"{part}"' for part in name.split("."))


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A Parquet file; `name` is its name among the published files."""

    name: str
    size_bytes: int
    row_count: int


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """The rows of a statement in files. `place` is the folder of these."""

    columns: pa.Schema
    place: ResultPlace
    folder: str
    files: tuple[ExportedFile, ...]

    def table(self) -> FilesTable:
        """Return the rows as a table over files."""
        if not self.files:
            return FilesTable(self.columns, ())
        store = self.place.store
        root = self.place.path
        if store is not None:
            root = f"{store.kind}://{store.alias}/{root}"
        paths = tuple(f"{root}{each.name.removeprefix(self.folder)}" for each in self.files)
        size_bytes = sum(each.size_bytes for each in self.files)
        scan = FileScan("parquet", paths, self.columns, ".parquet", store=store,
                        size_bytes=size_bytes, file_count=len(paths))  # fmt: skip
        return FilesTable(self.columns, (scan,))


async def export(
    dispatch: Dispatch,
    statement: Statement,
    published_at: ResultPlace,
    folder: str,
    *,
    is_table: bool = False,
    on_word: storing.OnWord = lambda _records: None,
) -> ExportedRows:
    """Store the rows of a statement in a folder of published files.

    A statement that `is_table` has all columns of one. `on_word` is called with what is stored so
    far; `files` names that.

    Raises:
        QueryError: the statement failed, or its rows cannot be stored.
    """
    place = parquet.place(published_at, folder, is_table=is_table)
    order = StoreOrder(place, _KEY, first_rows=_FIRST_ROWS, chunk_bytes=MOST_CHUNK_BYTES)
    stored = Statement(
        statement.sql,
        statement.parameters,
        store=order,
        in_background=statement.in_background,
        viewer=statement.viewer,
        sources=statement.sources,
    )
    answer = await storing.store(dispatch, new_query_id(), stored, on_word)
    columns = written_types.columns(answer.schema)
    return ExportedRows(columns, place, folder, files(folder, answer.chunks))


def files(folder: str, chunks: Iterable[ChunkInfo]) -> tuple[ExportedFile, ...]:
    """Return the files that chunks of an export are."""
    return tuple(
        ExportedFile(f"{folder}/{parquet.file_name(_KEY, each)}", each.size_bytes, each.row_count)
        for each in chunks
    )
