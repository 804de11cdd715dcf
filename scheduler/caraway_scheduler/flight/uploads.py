"""Rows that clients send by DoPut."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import QueryCancelledError
from caraway_serving.flight import statuses

_GONE = "the client went away before its upload was whole; nothing is written"


class UploadRoom:
    """The memory of all uploads that are under way; threads may use it at once."""

    def __init__(self, most_bytes: int = 1024 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._used_bytes = 0
        self._lock = Lock()

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """Give memory to one upload, as much as it asks for, until it has ended.

        What is yielded raises Unavailable when there is no more.
        """
        held_bytes = 0

        def take(size_bytes: int) -> None:
            nonlocal held_bytes
            with self._lock:
                if self._used_bytes + size_bytes > self._most_bytes:
                    raise statuses.Unavailable(
                        "other uploads use all memory there is for them; nothing of this one is "
                        "written; try again in a moment"
                    )
                self._used_bytes += size_bytes
                held_bytes += size_bytes

        try:
            yield take
        finally:
            with self._lock:
                self._used_bytes -= held_bytes


def collected(
    context: flight.ServerCallContext,
    reader: flight.MetadataRecordBatchReader,
    most_bytes: int,
    most_message_bytes: int,
    take: Callable[[int], None],
    check: Callable[[pa.Schema], None] = lambda _schema: None,
) -> pa.Table:
    """Read an upload to its end; `check` refuses columns before rows are read.

    `take` is told of all bytes that are kept, and may refuse them.

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
            take(chunk.data.nbytes)
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
