"""Answers that clients read at the executors, and that this process only watches."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    ExecutorLostError,
    OverloadedError,
    QueryCancelledError,
)
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.protocols.fleet import Fleet
from caraway_core.protocols.offers import OfferedPart, OfferOutcome
from caraway_scheduler.dispatch.tasks.reports import OnRead, WorkReports

logger = logging.getLogger(__name__)
_STOPPED = "the statement was stopped: it was cancelled, or its time was over"


async def make(
    fleet: Fleet, offers: Sequence[Coroutine[object, object, OfferedPart]]
) -> Sequence[OfferedPart]:
    """Make all offers of an answer, or none if executors hold too many or serve nowhere.

    Raises:
        CarawayError: a task failed before its first row.
    """
    making = [tasks.begin(each) for each in offers]
    try:
        await asyncio.wait(making)
    except BaseException:
        for each in making:
            each.cancel()
        await asyncio.wait(making)
        await _undo(fleet, making)
        raise
    failures = [exc for each in making if (exc := each.exception()) is not None]
    if not failures and all(each.result().location for each in making):
        return [each.result() for each in making]
    await _undo(fleet, making)
    for exc in failures:
        if not isinstance(exc, OverloadedError):
            raise exc
    logger.info("an answer is not offered", extra={"causes": list(map(str, failures))})
    return ()


async def _undo(fleet: Fleet, making: Sequence[asyncio.Task[OfferedPart]]) -> None:
    reason = QueryCancelledError("the rows are read elsewhere")
    for each in making:
        if not each.cancelled() and each.exception() is None:
            part = each.result()
            await fleet.withdraw(part.executor_id, part.offer_id, reason)


class OfferedStream:
    """A stream without rows that ends once clients have read all parts of an answer.

    If one part fails, all others are withdrawn: an answer is whole or an error.
    """

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(
        self,
        query_id: QueryId,
        schema: pa.Schema,
        parts: Sequence[OfferedPart],
        is_ordered: bool,
        fleet: Fleet,
        reports: WorkReports,
        on_close: OnRead,
    ) -> None:
        self.schema = schema
        self.offered = tuple(parts)
        self.is_ordered = is_ordered
        self.rows_read = 0
        self.ended = 0
        """How many parts were read to their end."""
        self._query_id = query_id
        self._fleet = fleet
        self._reports = reports
        self._on_close: OnRead | None = on_close
        self._size_bytes = 0
        self.traits = StreamTraits(answer=self)
        # Watched from now on: whoever never reads this stream must not keep the others waiting.
        self._watching = tasks.begin(self._watch())

    @property
    def passed(self) -> tuple[int, int]:
        """The rows and bytes that clients have read so far, of parts read to their end."""
        return self.rows_read, self._size_bytes

    @property
    def is_at_end(self) -> bool:
        """True if clients have read all parts, or the stream is closed."""
        return self._on_close is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._on_close is not None:
            try:
                await asyncio.shield(self._watching)
            finally:
                await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Withdraw the rows that were not read."""
        on_close, self._on_close = self._on_close, None
        if on_close is None:
            return
        if not self._watching.done():
            self._watching.cancel()
            await asyncio.wait((self._watching,))
        on_close(self.rows_read, self._size_bytes)

    async def _watch(self) -> None:
        watched = [tasks.begin(self._attend(part)) for part in self.offered]
        error: CarawayError = QueryCancelledError(_STOPPED)
        try:
            await asyncio.gather(*watched)
            return
        except ExecutorLostError as exc:
            self._reports.on_lost(exc.executor_id, exc.cause)
            error = AnswerCutError(
                f"the answer was cut short because {exc.message}; run the query again"
            )
            await self._withdraw(error)
            await self._reports.on_loss(self._query_id, exc.executor_id)
            raise error from exc
        except CarawayError as exc:
            error = exc
            raise
        finally:
            for each in watched:
                each.cancel()
            await self._withdraw(error)

    async def _attend(self, part: OfferedPart) -> None:
        outcome: OfferOutcome = await self._fleet.attend(part.executor_id, part.offer_id)
        self.rows_read += outcome.rows
        self._size_bytes += outcome.size_bytes
        self.ended += 1

    async def _withdraw(self, reason: CarawayError) -> None:
        """End the parts that are not read to their end; the others are not there any more."""
        for part in self.offered:
            await self._fleet.withdraw(part.executor_id, part.offer_id, reason)
