"""Rows of tasks that clients fetch here, and that are dropped when nobody does.

Everything here runs on the loop of the worker.
"""

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pyarrow as pa

from caraway_core.concurrency import tasks as background
from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    NotFoundError,
    OverloadedError,
    QueryCancelledError,
    QueryForbiddenError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.protocols.offers import Offer, OfferOutcome
from caraway_engine.rows import plain
from caraway_executor.resources.room import TaskMemory
from caraway_serving.formats import columns

MOST_OFFERS = 256
STALLED_S = 300.0
"""The time that the reader of an offer may take for one batch."""
_MOST_ENDED = 4096
_AHEAD = 2
"""The number of batches that are read ahead of the client."""
Start = Callable[[], Awaitable[BatchStream]]
Place = Callable[[], AbstractAsyncContextManager[object]]
"""Gives a slot for running work."""
_GONE = "the client went away before it had read all rows"


class OfferedRows:
    """The rows of one offer, from its start to its end."""

    def __init__(
        self,
        offer: Offer,
        call: str,
        origin: str,
        task_schema: pa.Schema,
        start: Start,
        place: Place,
    ) -> None:
        self.offer = offer
        self.call = call
        self.origin = origin
        self.schema = columns.without_views(offer.schema)
        self.is_taken = False
        self.touched_s = time.monotonic()
        self.ended: asyncio.Future[OfferOutcome] = asyncio.get_running_loop().create_future()
        # Somebody may be told of the end only later, or nobody.
        self.ended.add_done_callback(background.retrieve)
        self.on_stalled: Callable[[], None] = lambda: None
        self._plain = plain.plain_schema(task_schema)
        self._start = start
        self._place = place
        self._pump: asyncio.Task[None] | None = None
        self._has_come = asyncio.Event()
        self._ready: asyncio.Queue[pa.RecordBatch | BaseException | None] = asyncio.Queue(_AHEAD)
        self._failure: BaseException | None = None
        self._rows = self._size_bytes = 0

    async def start_task(self) -> None:
        """Start the task and wait for its first batch, unless that was done.

        Raises:
            CarawayError: it failed before.
        """
        if self._pump is None:
            async with self._place():
                # It may have been withdrawn while it waited for its place.
                if not self.ended.done():
                    self._pump = background.begin(self._read())
                    await self._has_come.wait()
        if self._failure is not None:
            raise self._failure

    async def read_batch(self) -> pa.RecordBatch | None:
        """Return the next batch as the engine made it; None is the end.

        Raises:
            CarawayError: the task failed, or the offer was withdrawn.
        """
        self.touched_s = time.monotonic()
        await self.start_task()
        item = await self._ready.get()
        self.touched_s = time.monotonic()
        if isinstance(item, BaseException):
            raise item
        if item is not None:
            self._rows += item.num_rows
            self._size_bytes += item.nbytes
        return item

    @property
    def outcome(self) -> OfferOutcome:
        """What was read until now."""
        return OfferOutcome(self._rows, self._size_bytes)

    def fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the columns of the statement; any thread may call this."""
        return plain.plain_batch(plain.plain_batch(batch, self._plain), self.schema)

    async def close(self, error: CarawayError | None = None) -> None:
        """End the task. Whoever still reads gets the error; without one, all was read."""
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(self.outcome)
        else:
            self._failure = error
            self.ended.set_exception(error)
        if self._pump is None:
            # It cannot be started any more.
            self._pump = background.begin(asyncio.sleep(0))
        self._pump.cancel()
        await asyncio.wait((self._pump,))
        while not self._ready.empty():
            self._ready.get_nowait()
        # Whoever waits for a batch now must not wait for ever.
        self._has_come.set()
        self._ready.put_nowait(error)

    async def _read(self) -> None:
        stream: BatchStream | None = None
        try:
            stream = await self._start()
            async for batch in stream:
                if batch.num_rows:
                    await self._ready.put(batch)
                    self._has_come.set()
            await self._ready.put(None)
        except BaseException as exc:
            if background.ends(exc):
                raise
            if not self._has_come.is_set():
                self._failure = exc
            else:
                await self._ready.put(exc)
        finally:
            self._has_come.set()
            if stream is not None:
                await stream.aclose()


class Offers:
    """The offers of an executor. Their number, their time and the memory they hold are bounded."""

    def __init__(self, room: TaskMemory, most: int = MOST_OFFERS) -> None:
        self._room = room
        self._most = most
        self._open: dict[str, OfferedRows] = {}
        self._held_bytes: dict[str, int] = {}
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        # Words only: an exception would keep its traceback, and with that the rows.
        self._ended: OrderedDict[str, OfferOutcome | str] = OrderedDict()
        self._tasks = background.Tasks()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def origins(self) -> frozenset[str]:
        """The schedulers whose tasks are offered."""
        return frozenset(each.origin for each in self._open.values())

    def enter(self, rows: OfferedRows, held_bytes: int) -> None:
        """Keep an offer, and the inputs that it holds, until it ends.

        Raises:
            OverloadedError: there are too many, or their inputs do not fit in memory.
        """
        if len(self._open) >= self._most or not self._room.take_bytes(held_bytes):
            raise OverloadedError(
                "the executor holds as many parts of answers as it may; fetch those that wait",
                retry_after_s=5,
            )
        offer_id = rows.offer.offer_id
        self._open[offer_id] = rows
        self._held_bytes[offer_id] = held_bytes
        self._expiries[offer_id] = asyncio.get_running_loop().call_later(
            rows.offer.wait_s, self._expire, offer_id
        )

    async def attend(self, offer_id: str) -> OfferOutcome:
        """Wait until an offer was read to its end.

        Raises:
            CarawayError: why it was not.
        """
        rows = self._open.get(offer_id)
        if rows is not None:
            return await asyncio.shield(rows.ended)
        found = self._ended.get(offer_id)
        if isinstance(found, OfferOutcome):
            return found
        raise AnswerCutError(found or _unknown())

    def take_offer(self, offer_id: str, credential: str | None) -> OfferedRows:
        """Hand out an offer, once; None means that the credential was checked elsewhere.

        Raises:
            QueryForbiddenError: the ticket is that of somebody else.
            NotFoundError: it was read before.
            AnswerCutError: the rows are no longer there.
        """
        rows = self._open.get(offer_id)
        if rows is None:
            self._raise_ended(offer_id)
        assert rows is not None
        wanted = rows.offer.credential
        if credential is not None and wanted and not hmac.compare_digest(credential, wanted):
            raise QueryForbiddenError(
                "the ticket belongs to another key or session; use the one that asked for it"
            )
        if rows.is_taken:
            raise NotFoundError("the ticket is in use: the rows can be read once")
        rows.is_taken = True
        rows.touched_s = time.monotonic()
        self._expiries.pop(offer_id).cancel()
        return rows

    def is_public(self, offer_id: str) -> bool:
        """Return whether no credential is needed; any thread may ask. So it is for unknown ones."""
        rows = self._open.get(offer_id)
        return rows is None or not rows.offer.credential

    async def end(self, offer_id: str, error: CarawayError | None = None) -> None:
        """End an offer; without an error all its rows were read."""
        rows = self._open.pop(offer_id, None)
        if rows is None:
            return
        if (expiry := self._expiries.pop(offer_id, None)) is not None:
            expiry.cancel()
        self._room.give(self._held_bytes.pop(offer_id))
        self._ended[offer_id] = rows.outcome if error is None else error.message
        while len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)
        await rows.close(error)

    def left(self, rows: OfferedRows) -> None:
        """Note that the reader of an offer has ended; unread rows are dropped."""
        self._spawn(rows.offer.offer_id, QueryCancelledError(_GONE))

    async def end_call(self, call: str) -> None:
        """Withdraw the offers of a call."""
        for offer_id in [key for key, each in self._open.items() if each.call == call]:
            await self.end(offer_id, QueryCancelledError("the query was cancelled"))

    def end_stalled(self) -> None:
        """Drop offers whose reader has not taken a batch for long."""
        oldest_s = time.monotonic() - STALLED_S
        for offer_id, rows in list(self._open.items()):
            if rows.is_taken and rows.touched_s < oldest_s:
                text = f"the client has read nothing for {STALLED_S:g} s; run the query again"
                self._spawn(offer_id, AnswerCutError(text))
                rows.on_stalled()

    async def aclose(self, error: CarawayError) -> None:
        """Withdraw all offers."""
        for offer_id in list(self._open):
            await self.end(offer_id, error)
        await self._tasks.aclose()

    def _expire(self, offer_id: str) -> None:
        self._spawn(offer_id, QueryCancelledError("the client did not fetch the rows in time"))

    def _spawn(self, offer_id: str, error: CarawayError) -> None:
        self._tasks.spawn(self.end(offer_id, error), "end an offer")

    def _raise_ended(self, offer_id: str) -> None:
        found = self._ended.get(offer_id)
        if found is None:
            raise AnswerCutError(_unknown())
        if isinstance(found, OfferOutcome):
            raise NotFoundError("the ticket was used: the rows can be read once")
        raise AnswerCutError(f"the rows are no longer there: {found}; run the query again")


def _unknown() -> str:
    return "the rows are no longer there, because the executor has restarted; run the query again"


class TakenStream:
    """An offer as a stream, which ends the offer when it ends or is closed."""

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(self, offers: Offers, rows: OfferedRows) -> None:
        self._offers = offers
        self._rows = rows
        self.schema = rows.schema
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """False: the end of an offer is known when it is read."""
        return False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self._rows.read_batch()
        if batch is None:
            await self._offers.end(self._rows.offer.offer_id)
            raise StopAsyncIteration
        return self._rows.fitted(batch)

    async def aclose(self) -> None:
        self._offers.left(self._rows)
