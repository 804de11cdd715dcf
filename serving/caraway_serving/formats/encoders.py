"""The encoders of all result formats, and the protocol that they implement."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import pyarrow as pa

from caraway_serving.formats import delimited, ipc, parquet, rows, text

Format = Literal["json", "versioned", "ndjson", "csv", "text", "arrow", "parquet"]


class Encoder(Protocol):
    """Encodes one result. Call `encode_start`, then `encode` for each batch, then `end`."""

    def encode_start(self, schema: pa.Schema) -> bytes: ...

    def encode(self, batch: pa.RecordBatch) -> bytes: ...

    def end(self, elapsed_ms: int) -> bytes: ...


_ENCODERS: Mapping[Format, Callable[[], Encoder]] = {
    "json": rows.JsonArray,
    "versioned": rows.VersionedJson,
    "ndjson": rows.JsonLines,
    "csv": delimited.Csv,
    "text": text.BorderedTable,
    "arrow": ipc.IpcStream,
    "parquet": parquet.Parquet,
}


def make(format_: Format) -> Encoder:
    """Return a new encoder for one result."""
    return _ENCODERS[format_]()
