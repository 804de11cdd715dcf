"""Reads record batches in a thread of their own, a few ahead of the reader.

A thread that waits inside Arrow hears neither Ctrl-C nor a cancelled task. The caller therefore
waits for a queue, and the thread waits for Arrow.
"""

import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

BATCHES_AHEAD = 4
_JOIN_S = 2.0


class PumpSource(ABC):
    """The stream of a pump. Its thread calls `read_schema` and `read_batch`, any `cancel`."""

    has_started = False
    """True if the server may have carried out a statement that writes."""

    @abstractmethod
    def read_schema(self) -> "pa.Schema":
        """Start the statement and return the schema of its rows."""

    @abstractmethod
    def read_batch(self) -> "pa.RecordBatch | None":
        """Return the next batch, or None after the last one."""

    @abstractmethod
    def cancel(self) -> None:
        """Have the server stop; `read_batch` then returns or raises soon."""


class BatchPump:
    """Hands on what a feed reads. Closing it cancels the statement and ends the thread."""

    def __init__(self, feed: PumpSource, name: str) -> None:
        self._feed = feed
        # A bounded queue: a reader that pauses makes the server pause.
        self._ready: queue.Queue[pa.RecordBatch | pa.Schema | BaseException | None] = queue.Queue(
            BATCHES_AHEAD
        )
        self._is_closed = threading.Event()
        # A daemon: a server that does not respond must not hold up the end of the process.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def has_started(self) -> bool:
        """True if the server may have carried out a statement that writes."""
        return self._feed.has_started

    def read_schema(self) -> "pa.Schema":
        """Wait for the schema."""
        return self._take()

    def read_batch(self) -> "pa.RecordBatch | None":
        """Wait for the next batch; None after the last one."""
        if self._is_closed.is_set():
            return None
        batch = self._take()
        if batch is None:
            self.close()
        return batch

    def close(self) -> None:
        """Cancel the statement unless it has ended; more than once does no harm."""
        self._is_closed.set()
        with contextlib.suppress(Exception):
            self._feed.cancel()
        self._drain()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)
        # Whoever still waits in another thread goes on.
        self._drain()
        with contextlib.suppress(queue.Full):
            self._ready.put_nowait(None)

    # Any: the queue holds the schema first, then batches.
    def _take(self) -> "pa.Schema | pa.RecordBatch | None":
        found = self._ready.get()
        if isinstance(found, BaseException):
            self.close()
            raise found
        return found

    def _drain(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._ready.get_nowait()

    def _work(self) -> None:
        try:
            self._put(self._feed.read_schema())
            while not self._is_closed.is_set() and (batch := self._feed.read_batch()) is not None:
                self._put(batch)
            self._put(None)
        except BaseException as error:  # noqa: BLE001 -- the waiting thread raises it
            self._put(error)

    def _put(self, item: "pa.RecordBatch | pa.Schema | BaseException | None") -> None:
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(item, timeout=0.1)
                return
        # No reader is left; one that was opened meanwhile still has to be cancelled.
        with contextlib.suppress(Exception):
            self._feed.cancel()
