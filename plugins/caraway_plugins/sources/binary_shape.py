"""Reads the columns of files with an embedded schema: Parquet, Arrow IPC and Avro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.errors import DatasetError
from caraway_core.tables import FileFormat
from caraway_plugins.sources import avro, storage
from caraway_plugins.sources.storage import FoundFile, Storage

_MOST_GROUPS = 8


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file, and the bytes that each takes; none if the file does not say."""

    schema: pa.Schema
    sizes: tuple[int, ...] = ()


def read(storage_: Storage, found: FoundFile, format_: FileFormat) -> FileColumns:
    """Return the columns of a file.

    Raises:
        DatasetError: the file is damaged, or does not have this format.
    """
    title = storage_.title(found.path)
    try:
        with storage.opened(storage_, found) as stream:
            columns = _READERS[format_](stream)
    except DatasetError:
        raise
    # The three readers have no common base class for errors at damaged files.
    except Exception as exc:
        raise DatasetError(
            "invalid", f"'{title}' is damaged or is not a {format_} file; replace it"
        ) from exc
    plain = pa.schema([pa.field(field.name, field.type) for field in columns.schema])
    return replace(columns, schema=plain)


def _arrow(stream: IO[bytes]) -> FileColumns:
    is_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    return FileColumns((pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream).schema)


def _parquet(stream: IO[bytes]) -> FileColumns:
    file = pq.ParquetFile(pa.PythonFile(stream, mode="r"))
    return FileColumns(file.schema_arrow, _column_bytes(file.schema_arrow, file.metadata))


def _column_bytes(schema: pa.Schema, metadata: pq.FileMetaData) -> tuple[int, ...]:
    """Return the size of each column, estimated from the first row groups if there are many."""
    if sum(_leaves(field.type) for field in schema) != metadata.num_columns:
        return ()  # Types of extensions may have other columns than they show.
    groups = [
        metadata.row_group(index) for index in range(min(_MOST_GROUPS, metadata.num_row_groups))
    ]
    seen_rows = sum(group.num_rows for group in groups)
    sizes, leaf = [], 0
    for field in schema:
        end = leaf + _leaves(field.type)
        seen = sum(
            group.column(index).total_compressed_size
            for group in groups
            for index in range(leaf, end)
        )
        sizes.append(max(0, seen) * metadata.num_rows // max(1, seen_rows))
        leaf = end
    return tuple(sizes)


def _leaves(type_: pa.DataType) -> int:
    """Return how many columns of Parquet a column has."""
    if pa.types.is_nested(type_):
        return sum(_leaves(type_.field(index).type) for index in range(type_.num_fields))
    return 1


_READERS: Mapping[str, Callable[[IO[bytes]], FileColumns]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "avro": lambda stream: FileColumns(avro.read_schema(stream)),
}
