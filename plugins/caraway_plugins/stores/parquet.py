"""Writes rows as Parquet files that other systems read: one folder per key, one file per chunk."""

import asyncio
import io
import json
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_plugins.iceberg import column_types, written_types
from caraway_plugins.iceberg.column_types import Path
from caraway_plugins.stores import checksums, chunks, published
from caraway_plugins.stores.published import Published

_KIND = "parquet"
_KIND_OF_TABLES = "parquet_table"
_IDS = "ids.json"
_LOOKED_AT, _DISTINCT = 20_000, 0.5
_CODEC = "snappy"
_COMPRESSED, _SMALLER = 4_096, 0.5
"""The rows that are compressed to see how small they become, and what a reader waits for."""


def place(published_at: ResultPlace, folder: str, *, is_table: bool) -> ResultPlace:
    """Return the place for Parquet files in a folder of published files.

    Files of a table have all of its columns.
    """
    under = published_at.under(folder)
    return ResultPlace(_KIND_OF_TABLES if is_table else _KIND, under.path, under.store)


def write_ids(files: Published, folder: str, ids: Mapping[Path, int], last_id: int) -> None:
    """Say which ids the files of a table in a folder give to fields; others get later ones.

    Raises:
        ExecutionError: it cannot be written.
    """
    document = {"ids": [[path, id_] for path, id_ in ids.items()], "last-id": last_id}
    files.write(f"{folder}/{_IDS}", json.dumps(document).encode())


def file_name(key: str, chunk: ChunkInfo) -> str:
    """Return the name of a stored file, below its place."""
    name = chunks.file_name(chunk.index, chunk.checksum)
    return f"{chunks.checked_key(key)}/{name.removesuffix('.arrow')}.parquet"


class ParquetWriter:
    """Writes chunks as Parquet files, with columns of types that Iceberg has.

    Two files are never the same, even if their rows are: each is a file of its table.
    """

    def __init__(self, files: Published) -> None:
        self._files = files

    @classmethod
    def at(cls, place: ResultPlace) -> "ParquetWriter":
        """Open the place.

        Raises:
            ResultStoreError: the place cannot be used.
        """
        kind = "file" if place.store is None else "bucket"
        return cls(published.opened(ResultPlace(kind, place.path, place.store)))

    async def write_chunk(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        """Store one file; it is there as a whole when this returns.

        Raises:
            CarawayError: the key is not a plain name.
            ExecutionError: the file cannot be stored.
        """
        return await asyncio.to_thread(self._write, key, index, schema, batches)

    def _columns(self, schema: pa.Schema) -> pa.Schema:
        return written_types.columns(schema)

    def _write(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        columns = self._columns(schema)
        rows = pa.Table.from_batches(batches, schema).cast(columns, safe=False)
        own = rows.replace_schema_metadata({"caraway.file": uuid.uuid4().hex})
        target = io.BytesIO()
        dictionary = _repeating(own)
        compression = _compressible(own, dictionary)
        _write_rows(own, target, dictionary, compression)
        content = target.getvalue()
        chunk = ChunkInfo(index, rows.num_rows, len(content), checksums.of(content))
        self._files.write(file_name(key, chunk), content)
        return chunk


def _write_rows(
    rows: pa.Table,
    target: object,
    dictionary: list[str] | bool,
    compression: Mapping[str, str] | str = _CODEC,
) -> None:
    # Iceberg has decimals as integers where they fit; readers take half the time for them.
    pq.write_table(
        rows,
        target,
        store_decimal_as_integer=True,
        use_dictionary=dictionary,
        compression=compression,
    )


def _repeating(rows: pa.Table) -> list[str] | bool:
    """Return the columns whose values repeat, so that a dictionary makes them smaller.

    For the others it would take as long as all the rest, and be given up in each row group.
    """
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    few = rows.slice(0, _LOOKED_AT)
    return [
        name
        for name, column in zip(few.column_names, few.columns, strict=True)
        if not pa.types.is_null(column.type)
        and pc.count_distinct(column).as_py() <= few.num_rows * _DISTINCT
    ]


def _compressible(rows: pa.Table, dictionary: list[str] | bool) -> Mapping[str, str] | str:
    """Return the codec of each column: none for those that it makes little smaller.

    Readers take a fifth less time for all of a table if they need not decompress its numbers.
    """
    if isinstance(dictionary, bool) or not rows.num_rows:
        return _CODEC
    few = io.BytesIO()
    _write_rows(rows.slice(0, _COMPRESSED), few, dictionary)
    group = pq.ParquetFile(few).metadata.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    return {
        each.path_in_schema: _CODEC
        if each.total_compressed_size <= each.total_uncompressed_size * _SMALLER
        else "none"
        for each in columns
    }


class TableWriter(ParquetWriter):
    """Writes files with all columns of a table, and with the ids that it gives them.

    Not every reader maps names to ids.
    """

    def __init__(self, files: Published) -> None:
        super().__init__(files)
        self._ids: tuple[dict[Path, int], int] | None = None

    def _columns(self, schema: pa.Schema) -> pa.Schema:
        if self._ids is None:
            self._ids = _read_ids(self._files)
        return column_types.with_ids(written_types.columns(schema), *self._ids)


def _read_ids(files: Published) -> tuple[dict[Path, int], int]:
    content = files.read(_IDS)
    if content is None:
        return {}, 0
    document = json.loads(content)
    return {tuple(path): id_ for path, id_ in document["ids"]}, document["last-id"]
