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
) -> pa.Table:
    """Read an upload to its end; raises as `received` does."""
    batches = list(received(context, reader, most_bytes, most_message_bytes, take))
    return pa.Table.from_batches(batches, reader.schema)


def received(
    context: flight.ServerCallContext,
    reader: flight.MetadataRecordBatchReader,
    most_bytes: int,
    most_message_bytes: int,
    take: Callable[[int], None],
    check: Callable[[pa.Schema], None] = lambda _schema: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an upload to its end; `check` refuses columns before rows are read.

    `take` is told of all bytes, which are kept until the end, and may refuse them.

    Raises:
        QueryCancelledError: the client went away meanwhile.
        InvalidArgument: it is too large, or what arrives is no stream of rows.
    """
    size_bytes = 0
    try:
        check(reader.schema)
        for chunk in reader:
            if chunk.data is None:
                continue
            if chunk.data.nbytes > most_message_bytes:
                del chunk
                give_back()
                raise _too_large(most_message_bytes)
            size_bytes += chunk.data.nbytes
            if size_bytes > most_bytes:
                raise too_many_rows(most_bytes)
            take(chunk.data.nbytes)
            yield chunk.data
    except statuses.StatusError:
        raise
    except pa.ArrowMemoryError as exc:
        raise without_memory(most_message_bytes, _too_large(most_message_bytes)) from exc
    except (pa.ArrowException, OSError, ValueError) as exc:
        if context.is_cancelled():
            raise QueryCancelledError(_GONE) from exc
        raise statuses.InvalidArgument(f"the rows cannot be read: {exc}") from exc
    # A stream that breaks looks to Arrow like one that ends.
    if context.is_cancelled():
        raise QueryCancelledError(_GONE)


def too_many_rows(most_bytes: int) -> statuses.StatusError:
    """Return the error for an upload that is too large as a whole."""
    return statuses.InvalidArgument(
        f"an upload may hold at most {most_bytes >> 20} MiB of rows, and none of these is "
        "written; send fewer at once"
    )


def without_memory(size_bytes: int, if_too_large: statuses.StatusError) -> statuses.StatusError:
    """Return the error for rows that Arrow had no memory for.

    They are too large if there is memory for as much as they may take, or if other rows take less.
    """
    give_back()
    try:
        pa.allocate_buffer(size_bytes)
    except pa.ArrowMemoryError:
        if pa.default_memory_pool().bytes_allocated() >= size_bytes:
            return statuses.Unavailable(
                "there is no memory for the upload at the moment, and nothing of it is written; "
                "try again in a moment"
            )
    return if_too_large


def give_back() -> None:
    """Return the memory of rows that were too large to the system, which Arrow would keep."""
    pa.default_memory_pool().release_unused()


def _too_large(most_message_bytes: int) -> statuses.StatusError:
    return statuses.InvalidArgument(
        f"a message of the upload holds more than {most_message_bytes} bytes of rows; send "
        "smaller batches, or raise runtime.flight.max_message_size"
    )
