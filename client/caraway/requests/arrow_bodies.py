"""Reads record batches from the body of an HTTP response, as it arrives."""

import threading
from collections.abc import Generator

import pyarrow as pa

from caraway.errors import BrokenResponseError

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class HttpBatches:
    """The batches of one response. Closing it closes the connection."""

    def __init__(self, chunks: Generator[bytes, None, None]) -> None:
        self._body = _Body(chunks)
        self._reader: pa.RecordBatchReader | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def read_schema(self) -> pa.Schema:
        """Wait for the schema."""
        with self._lock:
            self._reader = self._read(lambda: pa.ipc.open_stream(pa.PythonFile(self._body, "r")))
            return self._reader.schema

    def read_batch(self) -> pa.RecordBatch | None:
        """Wait for the next batch; None after the last one."""
        with self._lock:
            if self._is_closed or self._reader is None:
                return None
            try:
                return self._read(self._reader.read_next_batch)
            except StopIteration:
                self._body.check_end()
                return None

    def close(self) -> None:
        """Close the connection. It waits for a `read_batch` in another thread."""
        self._is_closed = True
        with self._lock:
            self._reader = None
            self._body.end()

    def _read(self, action: object) -> pa.RecordBatch:
        assert callable(action)
        try:
            return action()
        except (pa.ArrowException, OSError) as exc:
            self._body.raise_failure()
            raise BrokenResponseError(
                f"expected an Arrow stream, but the server sent something else: {exc}"
            ) from exc


class _Body:
    """The body as a file. Arrow takes its end for the end of the rows, so the end is checked."""

    closed = False

    def __init__(self, chunks: Generator[bytes, None, None]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._tail = b""
        self._failure: BaseException | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes, and fewer only at the end."""
        parts = []
        while size > 0:
            if not self._rest:
                chunk = self._next()
                if chunk is None:
                    break
                self._rest = memoryview(chunk)
            part, self._rest = self._rest[:size], self._rest[size:]
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def check_end(self) -> None:
        """Raise an error unless the stream has the mark of its end."""
        while self._next() is not None:
            pass
        if self._tail != END_OF_STREAM:
            raise BrokenResponseError("the response is incomplete: the end of the rows is missing")

    def raise_failure(self) -> None:
        """Raise what ended the body, if it did not end in order."""
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Close the connection."""
        self._chunks.close()

    def _next(self) -> bytes | None:
        try:
            chunk = next(self._chunks, None)
        except BaseException as error:
            self._failure = error
            raise
        if chunk is not None:
            self._tail = (self._tail + chunk[-8:])[-8:]
        return chunk
