"""Handles stored answers: the attempts of their tasks, and the records of their chunks."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    CatalogMovedError,
    ExecutorLostError,
    PartLostError,
    ShuttingDownError,
)
from caraway_core.protocols import storing
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.storing import StoredChunk, StoreOrder
from caraway_core.protocols.wrapped_streams import WrappedStream

CUT = (ExecutorLostError, PartLostError, ShuttingDownError)
"""The errors that end an open answer on an executor without fault of the statement."""


class Attempts:
    """The attempts at one task of a stored answer; each gets its own store order."""

    def __init__(self, order: StoreOrder, task: int = 0) -> None:
        self._first = replace(order, task=task)
        self._count = 0

    def another(self) -> StoreOrder:
        """Return the store order of the next attempt."""
        order = replace(self._first, attempt=self._first.attempt + self._count)
        self._count += 1
        return order

    @property
    def last(self) -> StoreOrder:
        """The store order of the latest attempt."""
        return replace(self._first, attempt=self._first.attempt + max(0, self._count - 1))


class PersistentWord(WrappedStream):
    """The chunk records of one task, which is rerun when its executor is lost.

    No client has seen its rows yet, so the task may start over; a separate record announces the new
    attempt. `again` recovers from the loss and reruns the task.
    """

    def __init__(
        self,
        first: BatchStream,
        attempts: Attempts,
        again: Callable[[CarawayError], Awaitable[BatchStream]],
        most_times: int,
    ) -> None:
        super().__init__(first)
        self.reads_only_catalog, self.written = False, None
        self._attempts = attempts
        self._again = again
        self._left = most_times

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except (*CUT, AnswerCutError) as exc:
            if not self._left:
                raise
            self._left -= 1
            await self._stream.aclose()
            await self._reopen(exc)
        order = self._attempts.last
        return storing.pack([storing.begun(order.task, order.attempt)], self.schema)

    async def _reopen(self, cause: CarawayError) -> None:
        try:
            self._stream = await self._again(cause)
        except CatalogMovedError as exc:
            raise AnswerCutError(
                f"the answer was cut short because {cause.message}, and the tables have changed "
                "since it started; run the statement again"
            ) from exc
        self._batches = aiter(self._stream)


class StoredTotal:
    """Sums up the stored chunks of all tasks, counting only the latest attempt of each."""

    def __init__(self, most_bytes: int | None) -> None:
        self._most_bytes = most_bytes
        self._attempts: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def add(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Count chunk records, and return their rows and bytes.

        Raises:
            ResultTooLargeError: all tasks together have stored more than the limit.
        """
        chunks = storing.unpack(batch)
        for each in chunks:
            self._count(each)
        stored_bytes = sum(self._sizes.values())
        if self._most_bytes is not None and stored_bytes > self._most_bytes:
            raise storing.too_large(stored_bytes, self._most_bytes)
        return (
            sum(each.chunk.row_count for each in chunks),
            sum(each.chunk.size_bytes for each in chunks),
        )

    def _count(self, stored: StoredChunk) -> None:
        if self._attempts.get(stored.task) != stored.attempt:
            self._attempts[stored.task] = stored.attempt
            self._sizes[stored.task] = 0
        self._sizes[stored.task] += stored.chunk.size_bytes
