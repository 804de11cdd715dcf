"""Rows that clients send by DoPut."""

import pyarrow as pa
from pyarrow import flight

from caraway_scheduler.flight import statuses


def collected(reader: flight.MetadataRecordBatchReader, most_bytes: int) -> pa.Table:
    """Read an upload to its end.

    Raises:
        InvalidArgument: it is too large, or what arrives is no stream of rows.
    """
    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    try:
        schema = reader.schema
        for chunk in reader:
            if chunk.data is None:
                continue
            size_bytes += chunk.data.nbytes
            if size_bytes > most_bytes:
                raise statuses.InvalidArgument(
                    f"an upload may hold at most {most_bytes >> 20} MiB of rows, and none of "
                    "these is written; send fewer at once"
                )
            batches.append(chunk.data)
    except pa.ArrowInvalid as exc:
        if isinstance(exc, statuses.StatusError):
            raise
        raise statuses.InvalidArgument(f"the rows cannot be read: {exc}") from exc
    return pa.Table.from_batches(batches, schema)
