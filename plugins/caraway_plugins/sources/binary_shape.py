"""Reads the columns of files with an embedded schema: Parquet, Arrow IPC and Avro."""

from collections.abc import Callable, Mapping
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.errors import DatasetError
from caraway_core.tables import FileFormat
from caraway_plugins.sources import avro, storage
from caraway_plugins.sources.storage import FoundFile, Storage


def read(storage_: Storage, found: FoundFile, format_: FileFormat) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        DatasetError: the file is damaged, or does not have this format.
    """
    title = storage_.title(found.path)
    try:
        with storage.opened(storage_, found) as stream:
            schema = _READERS[format_](stream)
    except DatasetError:
        raise
    # The three readers have no common base class for errors at damaged files.
    except Exception as exc:
        raise DatasetError(
            "invalid", f"'{title}' is damaged or is not a {format_} file; replace it"
        ) from exc
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _arrow(stream: IO[bytes]) -> pa.Schema:
    is_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream).schema


_READERS: Mapping[str, Callable[[IO[bytes]], pa.Schema]] = {
    "parquet": lambda stream: pq.read_schema(pa.PythonFile(stream)),
    "arrow": _arrow,
    "avro": avro.read_schema,
}
