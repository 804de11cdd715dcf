"""Rows that clients send by DoPut."""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import QueryCancelledError
from caraway_scheduler.flight import statuses

_GONE = "the client went away before its upload was whole; nothing is written"


def collected(
    context: flight.ServerCallContext,
    reader: flight.MetadataRecordBatchReader,
    most_bytes: int,
    most_message_bytes: int,
    check: Callable[[pa.Schema], None] = lambda _schema: None,
) -> pa.Table:
    """Read an upload to its end; `check` refuses columns before rows are read.

    Raises:
        QueryCancelledError: the client went away meanwhile.
        InvalidArgument: it is too large, or what arrives is no stream of rows.
    """
    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    try:
        schema = reader.schema
        check(schema)
        for chunk in reader:
            if chunk.data is None:
                continue
            if chunk.data.nbytes > most_message_bytes:
                raise statuses.InvalidArgument(
                    f"a message of the upload holds more than {most_message_bytes} bytes of rows; "
                    "send smaller batches, or raise runtime.flight.max_message_size"
                )
            size_bytes += chunk.data.nbytes
            if size_bytes > most_bytes:
                raise statuses.InvalidArgument(
                    f"an upload may hold at most {most_bytes >> 20} MiB of rows, and none of "
                    "these is written; send fewer at once"
                )
            batches.append(chunk.data)
    except statuses.StatusError:
        raise
    except (pa.ArrowException, OSError, ValueError) as exc:
        if context.is_cancelled():
            raise QueryCancelledError(_GONE) from exc
        raise statuses.InvalidArgument(f"the rows cannot be read: {exc}") from exc
    # A stream that breaks looks to Arrow like one that ends.
    if context.is_cancelled():
        raise QueryCancelledError(_GONE)
    return pa.Table.from_batches(batches, schema)
