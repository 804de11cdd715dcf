"""Reads the endpoints of an answer at the same time."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

MOST_AT_ONCE = 16
MOST_AHEAD = 4
"""The number of endpoints of an ordered answer that are read at a time."""
_BATCHES_AHEAD = 2
"""The number of batches of each endpoint that wait for the caller."""


class EndpointReader(Protocol):
    """The rows of one endpoint. `cancel` may be called in any thread."""

    def read_batch(self) -> "pa.RecordBatch | None": ...
    def cancel(self) -> None: ...


class EndpointPump(Protocol):
    """One endpoint, which a thread of its own reads ahead."""

    def read_schema(self) -> "pa.Schema": ...
    def read_batch(self) -> "pa.RecordBatch | None": ...
    def close(self) -> None: ...


Opener = Callable[[], EndpointReader]


class ParallelEndpoints:
    """Batches of several endpoints, as they arrive; the first error ends all of them."""

    def __init__(self, openers: Sequence[Opener], most_at_once: int = MOST_AT_ONCE) -> None:
        self._openers = deque(openers)
        self._readers: set[EndpointReader] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._left = min(len(openers), most_at_once)
        self._ready: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(
            _BATCHES_AHEAD * self._left
        )
        for number in range(self._left):
            threading.Thread(
                target=self._work, name=f"caraway-endpoint-{number}", daemon=True
            ).start()

    def read_batch(self) -> "pa.RecordBatch | None":
        """Return the next batch of any endpoint; None after the last one of all."""
        while self._left and not self._is_closed:
            try:
                item = self._ready.get(timeout=0.5)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                self.cancel()
                raise item
            if item is not None:
                return item
            self._left -= 1
        return None

    def cancel(self) -> None:
        """End all endpoints; more than once does no harm."""
        with self._lock:
            self._is_closed = True
            readers = list(self._readers)
        for reader in readers:
            with contextlib.suppress(Exception):
                reader.cancel()

    def _work(self) -> None:
        try:
            while (opener := self._next()) is not None:
                self._read(opener())
            self._put(None)
        except BaseException as error:  # noqa: BLE001 -- the thread that takes batches raises it
            self._put(error)

    def _next(self) -> Opener | None:
        with self._lock:
            return self._openers.popleft() if self._openers and not self._is_closed else None

    def _read(self, reader: EndpointReader) -> None:
        with self._lock:
            self._readers.add(reader)
            is_closed = self._is_closed
        try:
            if is_closed:
                reader.cancel()
                return
            while (batch := reader.read_batch()) is not None:
                self._put(batch)
        finally:
            with self._lock:
                self._readers.discard(reader)

    def _put(self, item: "pa.RecordBatch | BaseException | None") -> None:
        while not self._is_closed:
            with contextlib.suppress(queue.Full):
                self._ready.put(item, timeout=0.1)
                return


class OrderedEndpoints:
    """Batches of several endpoints in their order: the next few are read ahead."""

    def __init__(self, openers: Sequence[Callable[[], EndpointPump]]) -> None:
        self._waiting = deque(openers)
        self._reading: deque[EndpointPump] = deque()
        self._lock = threading.Lock()
        self._read_ahead()

    def read_schema(self) -> "pa.Schema":
        """Wait for the schema of the first endpoint."""
        return self._reading[0].read_schema()

    def read_batch(self) -> "pa.RecordBatch | None":
        """Return the next batch; None after the last one of the last endpoint."""
        while self._reading:
            batch = self._reading[0].read_batch()
            if batch is not None:
                return batch
            with self._lock:
                self._reading.popleft()
            self._read_ahead()
            if self._reading:
                self._reading[0].read_schema()
        return None

    def cancel(self) -> None:
        """End all endpoints; more than once does no harm."""
        with self._lock:
            self._waiting.clear()
            reading = list(self._reading)
        for each in reading:
            each.close()

    def _read_ahead(self) -> None:
        with self._lock:
            while self._waiting and len(self._reading) < MOST_AHEAD:
                self._reading.append(self._waiting.popleft()())
