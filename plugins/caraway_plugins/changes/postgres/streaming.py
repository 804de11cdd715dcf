"""Streams changes from the log, starting at a position, in batches of whole transactions."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from caraway_core.concurrency import tasks
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import SourceBatch
from caraway_plugins.changes.postgres import pgoutput, positions
from caraway_plugins.changes.postgres.collecting import Collector, Fetch
from caraway_plugins.changes.postgres.connecting import ReplicatedTable, mapped, quoted
from caraway_plugins.changes.postgres.positions import PostgresPosition

_ROWS_PER_TURN = 200
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Sizes of batches, and intervals.

    A batch ends with the first transaction beyond `batch_rows`. A transaction larger than
    `largest_rows` or `largest_bytes` is applied in parts. A keep-alive is sent every `beat_s`. If
    the log grows without rows of the table, the position is advanced every `idle_s`.
    """

    batch_rows: int = 10_000
    largest_rows: int = 200_000
    largest_bytes: int = 256 << 20
    beat_s: float = 10.0
    idle_s: float = 60.0


class Stream:
    """One session on a replication slot.

    All methods except `Collector.take_changes` run in the event loop and do not block.
    """

    def __init__(
        self,
        place: ReplicatedTable,
        connection: Any,
        collector: Collector,
        at: PostgresPosition,
        limits: StreamLimits,
    ) -> None:
        self._place = place
        self._limits = limits
        self._collector = collector
        self._at = at
        self._ended = at.lsn
        self._cursor = connection.cursor()
        self._socket = connection.fileno()
        self._in_transaction = False
        self._has_ended_open = False
        """True if a partly delivered transaction has ended and its end has not been reported."""
        self._commit_lsn = 0
        self._committed_at: datetime | None = None
        self._confirmed = at.lsn
        self._tasks = tasks.Tasks()

    async def start(self) -> None:
        """Start replication after the position.

        Raises:
            DatasetError: the server rejects the request.
        """
        options = {"proto_version": "1", "publication_names": quoted(self._place.publication)}

        def ask() -> None:
            with mapped(self._place):
                self._cursor.start_replication(
                    slot_name=self._place.slot,
                    start_lsn=positions.lsn_text(self._at.lsn),
                    options=options,
                )

        await asyncio.to_thread(ask)
        self._tasks.spawn(self._keep_alive(), "keep a replication connection alive")

    async def batches(
        self, oid: int, fetch: Fetch, check: Callable[[], None]
    ) -> AsyncGenerator[SourceBatch, None]:
        """Yield batches of changes of the relation with this OID.

        The log does not report dropped tables. Therefore `check` is called at intervals while the
        log has no rows of the relation.

        Raises:
            DatasetError: the connection is lost, a change does not fit, or the check fails.
        """
        loop = asyncio.get_running_loop()
        idle_at = loop.time() + self._limits.idle_s
        while True:
            while self._read_some(oid):  # noqa: ASYNC110 -- it gives other tasks a turn
                await asyncio.sleep(0)  # Give other tasks of the event loop a turn.
            if self._is_due() or self._is_idle_since(idle_at):
                idle_at = loop.time() + self._limits.idle_s
                if not len(self._collector):
                    await asyncio.to_thread(check)
                yield await self._batch(fetch)
            else:
                await self._readable(idle_at - loop.time())

    def confirm(self, lsn: int) -> None:
        """Tell the server that the log before this position can be discarded.

        Raises:
            DatasetError: the connection is lost.
        """
        self._confirmed = max(self._confirmed, lsn)
        with mapped(self._place):
            lsn = self._confirmed
            self._cursor.send_feedback(lsn, lsn, lsn, force=True)

    async def aclose(self) -> None:
        """Stop the keep-alive task."""
        await self._tasks.aclose()

    def _read_some(self, oid: int) -> bool:
        """Read several messages; return False if none are left or a batch is full."""
        return all(self._read(oid) for _ in range(_ROWS_PER_TURN))

    def _read(self, oid: int) -> bool:
        """Read one message; return False if none is left or a batch is full."""
        if self._is_enough():
            return False
        with mapped(self._place):
            message = self._cursor.read_message()
        if message is None:
            return False
        try:
            self._take(pgoutput.parse(message.payload), oid)
        except (ValueError, IndexError) as exc:
            raise DatasetError(
                "unavailable", f"{self._place.title}: the log has {exc}, which cannot be parsed"
            ) from exc
        return True

    def _take(self, message: pgoutput.Message | None, oid: int) -> None:
        collector = self._collector
        match message:
            case pgoutput.Insert(oid=of, row=row) if of == oid:
                collector.insert(row)
            case pgoutput.Update(oid=of, old=old, row=row) if of == oid:
                collector.update(old, row)
            case pgoutput.Delete(oid=of, old=old) if of == oid:
                collector.delete(old)
            case pgoutput.Truncate(oids=oids) if oid in oids:
                collector.truncate()
            case pgoutput.Relation(oid=of) if of == oid:
                collector.follow(message)
            case pgoutput.Begin(final_lsn=lsn, committed_us=us):
                self._committed_at = _EPOCH + timedelta(microseconds=us)
                is_open = lsn == self._at.open_lsn
                collector.begin_transaction(lsn, self._at.taken if is_open else 0)
                self._in_transaction, self._commit_lsn = True, lsn
            case pgoutput.Commit(end_lsn=lsn):
                self._in_transaction, self._ended = False, lsn
                self._has_ended_open = self._at.open_lsn != 0

    def _is_enough(self) -> bool:
        count, limits = len(self._collector), self._limits
        most = limits.largest_rows if self._in_transaction else limits.batch_rows
        return count >= most or self._collector.size_bytes >= limits.largest_bytes

    def _is_due(self) -> bool:
        """Return whether a batch is ready: rows of whole transactions, or too many of one.

        The end of a transaction is one even without rows: until then its parts are held back.
        """
        if self._in_transaction:
            return len(self._collector) > 0 and self._is_enough()
        return len(self._collector) > 0 or self._has_ended_open

    async def _batch(self, fetch: Fetch) -> SourceBatch:
        is_whole = not self._in_transaction
        if is_whole:
            if not len(self._collector):
                self._ended = max(self._ended, self._cursor.wal_end)
            self._at = replace(self._at, lsn=self._ended, open_lsn=0, taken=0)
            self._has_ended_open = False
        else:
            self._at = replace(
                self._at,
                lsn=self._ended,
                open_lsn=self._commit_lsn,
                taken=self._collector.number,
            )
        at = self._at
        changes = await asyncio.to_thread(self._collector.take_changes, fetch)
        return SourceBatch(changes, at.text(), is_whole, self._committed_at)

    def _is_idle_since(self, idle_at: float) -> bool:
        """Return whether the log advanced without rows for `idle_s`; the server can then discard
        it.
        """
        if self._in_transaction or asyncio.get_running_loop().time() < idle_at:
            return False
        return bool(max(self._ended, self._cursor.wal_end) > self._at.lsn)

    async def _readable(self, seconds: float) -> None:
        """Wait until the connection is readable, at most for `seconds`."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        loop.add_reader(self._socket, event.set)
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._socket)

    async def _keep_alive(self) -> None:
        """Send feedback regularly, also while a batch is applied, so that the server does not time
        out.
        """
        while True:
            await asyncio.sleep(self._limits.beat_s)
            try:
                self.confirm(self._confirmed)
            except DatasetError:
                return  # The reader fails as well, and reports it.
