"""Answers under way to one reader, and those that wait between GetFlightInfo and DoGet.

Everything here runs on the event loop, unless it says otherwise.
"""

import asyncio
from dataclasses import replace
from threading import Lock

import pyarrow as pa

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import QueryCancelledError
from caraway_core.ids import PrincipalId, QueryId
from caraway_core.protocols.dispatch import OfferedAnswer
from caraway_gateway.services import Services
from caraway_scheduler.queries.answers import CachedRows, LiveRows
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.formats import columns

_WAIT_S = 5.0
_MOST_WHOLE = 256
_MOST_LIVE = 64


class FlightReading:
    """The rows of one statement; batches are taken when the reader wants them."""

    def __init__(self, services: Services, request: QueryRequest) -> None:
        self._services = services
        self._request = replace(request, takes_plain=True, takes_uncut=True)
        self._rows: LiveRows | None = None
        self._ready: list[pa.RecordBatch] = []
        self.principal: PrincipalId = request.principal.id
        self.schema = pa.schema([])

    async def open(self) -> QueryId:
        """Start the statement, or find its answer in the cache.

        Raises:
            QueryError: whatever is wrong with it.
            ShuttingDownError: the process takes no more work.
        """
        queries = self._services.queries
        answer = queries.recall(self._request)
        if answer is None:
            answer = await queries.start(self._request)
        rows = answer.rows
        self.schema = columns.without_views(rows.schema)
        if isinstance(rows, CachedRows):
            self._ready = list(rows.batches)
        elif rows.whole is not None:
            # Nothing is left to wait for, so give back the place among the running queries.
            self._ready = [batch async for batch in rows]
        else:
            self._rows = rows
        return answer.query_id

    @property
    def is_whole(self) -> bool:
        """True if the statement has ended and its remaining rows have arrived."""
        return self._rows is None

    @property
    def offered(self) -> OfferedAnswer | None:
        """What executors serve of the answer; None if its rows pass here."""
        return self._rows.offered if self._rows is not None else None

    @property
    def row_count(self) -> int:
        """The number of rows; -1 while it is unknown."""
        return sum(batch.num_rows for batch in self._ready) if self.is_whole else -1

    async def read_batches(self) -> list[pa.RecordBatch]:
        """Return all batches that are here, or the next one; nothing means the end.

        Raises:
            QueryError: the statement failed on the way.
        """
        batches, self._ready = self._ready, []
        if not batches and self._rows is not None:
            batch = await anext(self._rows, None)
            if batch is None:
                self._rows = None
            else:
                batches = [batch]
                while self._rows.is_at_hand:
                    batches.append(await anext(self._rows))
        self.count(batches)
        return batches

    async def settle(self) -> None:
        """Wait until a statement that has few rows has ended, such as one that writes.

        Raises:
            QueryError: it failed.
        """
        while self._rows is not None:
            batch = await anext(self._rows, None)
            if batch is None:
                self._rows = None
            else:
                self._ready.append(batch)

    def take_whole(self) -> list[pa.RecordBatch]:
        """Return all rows of a statement that has ended; any thread may take them."""
        batches, self._ready = self._ready, []
        return batches

    def count(self, batches: list[pa.RecordBatch]) -> None:
        """Count bytes that are sent."""
        sent = self._services.tallies.query_returned_bytes
        sent[(self._request.protocol,)] += sum(batch.nbytes for batch in batches)

    def close(self, error: BaseException | None = None) -> None:
        """End the statement, unless it has ended; more than once does no harm."""
        rows, self._rows = self._rows, None
        self._ready = []
        if rows is not None:
            rows.close(error)


class WaitingRoom:
    """Answers that GetFlightInfo started, so that DoGet need not run the statement again.

    An answer waits for a few seconds and is given away once. One that still runs keeps a place
    among the running queries, so these may hold at most half of the places. Where that is not
    enough, the principal with most answers loses its oldest, whose ticket then runs the statement
    again.
    """

    def __init__(self, max_running: int | None) -> None:
        most_live = max(1, max_running // 2) if max_running else _MOST_LIVE
        self.quota: Quota[QueryId] = Quota("waiting answers", QuotaLimits(most=_MOST_WHOLE))
        self.live_quota: Quota[QueryId] = Quota("running answers", QuotaLimits(most=most_live))
        self._waiting: dict[QueryId, FlightReading] = {}
        self._expiries: dict[QueryId, asyncio.TimerHandle] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    async def open(self, reading: FlightReading) -> QueryId:
        """Start the statement and let its answer wait, unless executors offer it.

        Raises:
            QueryError, ShuttingDownError: as from the reading itself.
        """
        query_id = await reading.open()
        if reading.offered is not None:
            return query_id
        with self._lock:
            alike = self.quota if reading.is_whole else self.live_quota
            gone = alike.add(reading.principal, query_id)
            self._waiting[query_id] = reading
        self._is_empty.clear()
        loop = asyncio.get_running_loop()
        self._expiries[query_id] = loop.call_later(_WAIT_S, self._dismiss, query_id)
        for each in gone:
            self._dismiss(each)
        return query_id

    def take_reading(self, query_id: QueryId, principal: PrincipalId) -> FlightReading | None:
        """Give an answer to the caller that requested it, once."""
        reading = self._found(query_id, principal)
        self.tidy(query_id)
        return reading

    def take_whole(self, query_id: QueryId, principal: PrincipalId) -> FlightReading | None:
        """Hand over an answer whose statement has ended; any thread may ask.

        The event loop then has to `tidy`. So the thread of a call need not wait for it.
        """
        return self._found(query_id, principal, must_be_whole=True)

    def tidy(self, query_id: QueryId) -> None:
        """Forget when an answer would have expired, if it is not here any more."""
        if query_id in self._waiting:
            return
        if (expiry := self._expiries.pop(query_id, None)) is not None:
            expiry.cancel()
        if not self._waiting:
            self._is_empty.set()

    def _found(
        self, query_id: QueryId, principal: PrincipalId, *, must_be_whole: bool = False
    ) -> FlightReading | None:
        with self._lock:
            reading = self._waiting.get(query_id)
            if reading is None or reading.principal != principal:
                return None
            if must_be_whole and not reading.is_whole:
                return None
            return self._pop(query_id)

    def clear(self) -> None:
        for query_id in list(self._waiting):
            self._dismiss(query_id)

    def _pop(self, query_id: QueryId) -> FlightReading | None:
        self.quota.drop(query_id)
        self.live_quota.drop(query_id)
        return self._waiting.pop(query_id, None)

    def _dismiss(self, query_id: QueryId) -> None:
        with self._lock:
            reading = self._pop(query_id)
        self.tidy(query_id)
        if reading is not None:
            reading.close(QueryCancelledError("the client did not fetch the rows"))

    async def wait_empty(self) -> None:
        """Wait until each answer was fetched or given up."""
        await self._is_empty.wait()
