"""Exports rows of statements as Parquet files, which executors write where they make the rows."""

from __future__ import annotations

from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.dispatch import Dispatch
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


async def export(
    dispatch: Dispatch, statement: Statement, published_at: ResultPlace, folder: str
) -> FilesTable:
    """Store the rows of a statement in a folder of published files, and return them as a table.

    Raises:
        QueryError: the statement failed, or its rows cannot be stored.
    """
    place = parquet.place(published_at, folder)
    order = StoreOrder(place, _KEY, first_rows=_FIRST_ROWS, chunk_bytes=MOST_CHUNK_BYTES)
    stored = Statement(
        statement.sql,
        statement.parameters,
        store=order,
        in_background=statement.in_background,
        viewer=statement.viewer,
        sources=statement.sources,
    )
    answer = await storing.store(dispatch, new_query_id(), stored, lambda _records: None)
    columns = written_types.columns(answer.schema)
    store = place.store
    root = place.path if store is None else f"{store.kind}://{store.alias}/{place.path}"
    paths = tuple(f"{root}/{parquet.file_name(_KEY, chunk)}" for chunk in answer.chunks)
    if not paths:
        return FilesTable(columns, ())
    size_bytes = sum(chunk.size_bytes for chunk in answer.chunks)
    scan = FileScan(
        "parquet", paths, columns, ".parquet", store=store, size_bytes=size_bytes,
        file_count=len(paths),
    )  # fmt: skip
    return FilesTable(columns, (scan,))
