"""The client of one engine process, with its calls and streams."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa

from caraway_core.channels.channel import Channel
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.ids import PrincipalId, TableName
from caraway_core.protocols.embedding import TextVectors
from caraway_core.protocols.fleet import Task
from caraway_core.statements import CatalogSnapshot, Statement, SystemTable, ViewFacts
from caraway_executor.engines import embedding, messages
from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    NotBegunError,
)
from caraway_executor.engines.crossing import SchemaCache, SendingEnd, read, written
from caraway_executor.engines.messages import (
    Answered,
    BatchesSent,
    Begun,
    CallFailed,
    Noted,
    Opened,
    PlanningTook,
    Pong,
    Probed,
    Returned,
    Stopped,
    StreamEnded,
    SystemTableWanted,
    TableWritten,
    VectorsWanted,
)
from caraway_executor.engines.remote_streams import RemoteStream
from caraway_executor.engines.shared_memory import Place, ReadableMemory
from caraway_executor.engines.works import Work, statement_of

_Answer = asyncio.Future[Any]
logger = logging.getLogger(__name__)
_schemas = SchemaCache()


class EngineProcess:
    """An engine process, for as long as its channel is open."""

    def __init__(
        self,
        pid: int,
        on_lost: Callable[["EngineProcess"], None],
        memory: ReadableMemory | None = None,
    ) -> None:
        """Take the memory that it shares, if it does."""
        self.pid = pid
        self._memory = memory
        self.started_at_ms = time.time_ns() // 1_000_000
        self.cause: Cause | None = None
        """Why it ended, once it was decided to end it or it ended by itself."""
        self.detail = ""
        self.registering: TableName | None = None
        """The view that it is planning, if any."""
        self.registering_since_s = 0.0
        self.is_silent = False
        """True if it has recently not answered."""
        self.silent_bytes = 0
        """Its memory when it was first seen silent."""
        self.has_stopped = False
        """True if a statement was cancelled whose work may continue."""
        self.prepared: CatalogSnapshot | None = None
        """The catalog that it was given last."""
        self.installed: CatalogSnapshot | None = None
        """The catalog that new statements see in it."""
        self.works: dict[int, Work] = {}
        self.holds: tuple[TableName, ...] = ()
        self._on_lost = on_lost
        self.on_kept: Callable[[TableName, pa.Table], None] = lambda _table, _rows: None
        """Called with the rows of a table in memory after each write to it."""
        self.begun = 0
        """How many calls and streams it was given; the number of the latest."""
        self._outward = SendingEnd()
        self._waiting: dict[int, asyncio.Future[object]] = {}
        # Weak, because a reader may drop its stream without closing it, which has to stop the work.
        self._streams: WeakValueDictionary[int, RemoteStream] = WeakValueDictionary()
        self._system: Mapping[TableName, SystemTable] = {}
        self._models: TextVectors | None = None
        self._tasks = Tasks()
        self._channel: Channel | None = None
        self._loop = asyncio.get_running_loop()
        self.pinged_s: float | None = None
        """When the pending ping was sent."""
        self.probed_s: float | None = None
        """When the pending probe was sent."""
        self.thread: int | None = None
        """The native id of the thread of its event loop, after the first pong."""

    async def connect(self, end: socket.socket) -> None:
        """Open the channel over one end of a socket pair."""
        self._channel = await Channel.open(end, self._receive, self._lost)

    @property
    def statements(self) -> int:
        """The number of users' statements running in it."""
        return sum(each.statement is not None for each in self.works.values())

    @property
    def has_writes(self) -> bool:
        """True if a statement that writes is running in it."""
        return any(each.is_write for each in self.works.values())

    @property
    def is_alive(self) -> bool:
        """True if it accepts work."""
        return self._channel is not None and self._channel.is_open and self.cause is None

    def kill(self, cause: Cause, detail: str = "") -> None:
        """End the process at once; its work fails with the cause."""
        if self.cause is None:
            self.cause, self.detail = cause, detail
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self._channel is not None:
            self._channel.close()

    async def give(
        self, method: str, snapshot: CatalogSnapshot
    ) -> tuple[Mapping[TableName, str], Mapping[TableName, ViewFacts]]:
        """Give it a catalog through a method; return the failed tables, and the facts of the views.

        Raises:
            EngineLostError: the process ended in the meantime.
        """
        self._system = snapshot.system
        self._models = snapshot.embedding.vectors
        failed, views = await self.call(method, self._outward.catalog(snapshot))
        return failed, views

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method in the engine process.

        Raises:
            EngineLostError: the process ended in the meantime.
        """
        number, answer = self._begin(method, arguments, messages.Call)
        try:
            return await answer
        except asyncio.CancelledError:
            self.stop(number)
            raise

    async def open(self, method: str, *arguments: object) -> "RemoteStream":
        """Start a stream in the engine process.

        Raises:
            EngineLostError: the process ended in the meantime.
        """
        number, answer = self._begin(method, arguments, messages.Open)
        try:
            stream: RemoteStream = await answer
        except asyncio.CancelledError:
            self.stop(number)
            raise
        return stream

    def ping(self) -> None:
        """Send a ping, unless one is pending."""
        if self.pinged_s is None and self._channel is not None:
            self.pinged_s = self._loop.time()
            self._channel.send(messages.Ping())

    def unanswered(self) -> Iterator[tuple[int, Work]]:
        """Yield statements that have started and have no answer; they may be being planned."""
        for number, work in list(self.works.items()):
            if work.statement is not None and work.is_begun and number in self._waiting:
                yield number, work

    def ask_planning(self, number: int) -> None:
        """Ask how long the process has planned a statement."""
        if self._channel is not None:
            self.works[number].asked_s = self._loop.time()
            self._channel.send(messages.PlanningAsked(number))

    def refuse(self, number: int, error: CarawayError) -> None:
        """Cancel a statement that has no answer, which fails with this error."""
        answer = self._waiting.get(number)
        self.stop(number)
        if answer is not None and not answer.done():
            answer.set_exception(error)

    @property
    def is_responsive(self) -> bool:
        """True if it has answered every question about its own state."""
        return self.pinged_s is None and self.probed_s is None

    def probe(self) -> None:
        """Ask whether its threads take work, unless that is being asked."""
        if self.probed_s is None and self._channel is not None:
            self.probed_s = self._loop.time()
            self._channel.send(messages.ThreadsProbe())

    def under_way(self) -> Iterator[tuple[int, Work, _Answer | None, RemoteStream | None]]:
        """Yield all work, with the answer that its caller waits for or the stream that is read."""
        for number, work in list(self.works.items()):
            yield number, work, self._waiting.get(number), self._streams.get(number)

    def abandon(self, number: int) -> None:
        """Cancel work that goes on elsewhere, and do not wait for its end."""
        self._forget(number)
        self.has_stopped = True
        if self._channel is not None:
            # In case it continues, or starts later.
            self._channel.send(messages.StopCall(number))

    def _begin(
        self, method: str, arguments: tuple[object, ...], kind: Callable[..., object]
    ) -> tuple[int, asyncio.Future[Any]]:
        if self._channel is None or not self.is_alive:
            raise EngineLostError(self.cause or Cause.CRASH, self.detail)
        self.begun += 1
        number = self.begun
        statement = next(filter(None, map(statement_of, arguments)), None)
        task = next((each for each in arguments if isinstance(each, Task)), None)
        crossing = tuple(map(self._crossing, arguments))
        answer = self._waiting[number] = self._loop.create_future()
        self.works[number] = Work(statement, self._loop.time(), task)
        try:
            self._channel.send(kind(number, method, crossing))
        except BaseException:
            self._forget(number)
            raise
        return number, answer

    def _crossing(self, value: object) -> object:
        return self._outward.statement(value) if isinstance(value, Statement) else value

    def more(self, number: int, batches: int) -> None:
        """Allow this many more batches of a stream."""
        if self._channel is not None:
            self._channel.send(messages.More(number, batches))

    def stop(self, number: int) -> None:
        """Cancel work; it counts as running until the engine reports that it stopped."""
        self._waiting.pop(number, None)
        self._streams.pop(number, None)
        work = self.works.get(number)
        if work is not None and not work.is_stopped:
            work.is_stopped = self.has_stopped = True
            work.began_s = self._loop.time()
            if self._channel is not None:
                self._channel.send(messages.StopCall(number))

    def _forget(self, number: int) -> None:
        self._waiting.pop(number, None)
        self._streams.pop(number, None)
        self.works.pop(number, None)

    def _receive(self, message: object, body: pa.Buffer | None) -> None:
        match message:
            case BatchesSent(number, is_whole, place):
                if place is not None:
                    body = self._in_memory(place)
                if (stream := self._streams.get(number)) is not None:
                    stream.add(body, is_whole)
            case Begun(number):
                if (work := self.works.get(number)) is not None:
                    work.is_begun = True
            case Opened(number, serialized, reads_only_catalog, written, mark):
                answer = self._waiting.pop(number, None)
                if answer is not None and not answer.done():
                    rows = _schemas.rows(serialized)
                    stream = RemoteStream(self, number, rows, reads_only_catalog, written, mark)
                    self._streams[number] = stream
                    self.works[number].is_write = written is not None
                    answer.set_result(stream)
            case Answered(number, serialized, reads_only_catalog, is_whole):
                rows = _schemas.rows(serialized)
                stream = RemoteStream(self, number, rows, reads_only_catalog, None)
                stream.add(body, is_whole)
                stream.end(None)
                self._answer(number, stream, None)
            case TableWritten(table):
                self.on_kept(table, read(body))
            case StreamEnded(number):
                if (stream := self._streams.get(number)) is not None:
                    stream.end(None)
                self._forget(number)
            case Returned(number, value):
                self._answer(number, value, None)
            case CallFailed(number, error):
                if (stream := self._streams.get(number)) is not None:
                    stream.end(error)
                self._answer(number, None, error)
            case Stopped(number):
                self._forget(number)
            case SystemTableWanted(number, table, viewer):
                self._tasks.spawn(self._show(number, table, viewer), "show a system table")
            case VectorsWanted() as wanted:
                self._tasks.spawn(self._embed(wanted, body), "embed texts")
            case Pong(thread):
                self.pinged_s, self.thread = None, thread
            case PlanningTook(number, seconds):
                if (work := self.works.get(number)) is not None:
                    work.planned_s, work.asked_s = seconds, None
            case Probed():
                self.probed_s = None
            case Noted(table):
                self.registering = table
                self.registering_since_s = self._loop.time() if table is not None else 0.0

    def _in_memory(self, place: Place) -> pa.Buffer:
        """Return what is at a place, which is given back when nothing uses it any more."""
        assert self._memory is not None
        return self._memory.view(place, self._dropped)

    def _dropped(self, start: int) -> None:
        if self._channel is not None:
            self._channel.send(messages.PlaceDropped(start))

    def _answer(self, number: int, value: object, error: BaseException | None) -> None:
        answer = self._waiting.get(number)
        self._forget(number)
        if answer is None or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)

    async def _show(self, number: int, table: TableName, viewer: PrincipalId | None) -> None:
        body, error = None, None
        try:
            # Building a long history takes time.
            content = await asyncio.to_thread(self._system[table], viewer)
            body = await asyncio.to_thread(written, content)
        except Exception:
            logger.exception("cannot build a system table", extra={"table": table})
            error = ExecutionError(f"table 'runtime.{table}' cannot be read; the log has the cause")
        if self._channel is not None:
            self._channel.send(messages.Shown(number, error), body)

    async def _embed(self, vectors_wanted: VectorsWanted, body: pa.Buffer | None) -> None:
        answer, error = None, None
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(
                embedding.threads(), embedding.embedded, self._models, vectors_wanted, body
            )
        except CarawayError as exc:
            error = exc
        except Exception:
            logger.exception("cannot embed texts", extra={"model": vectors_wanted.model})
            error = ExecutionError(
                f"embedding model '{vectors_wanted.model}' failed; the log has the cause"
            )
        if self._channel is not None:
            self._channel.send(messages.Embedded(vectors_wanted.number, error), answer)

    def _lost(self) -> None:
        # The fork server reports the exit status a moment later; waiters get the error then.
        self._channel = None
        self._on_lost(self)

    def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            self._channel.close()

    def fail_all(self) -> None:
        """Fail all work in progress, once the cause is known."""
        assert self.cause is not None
        error = EngineLostError(self.cause, self.detail)
        not_begun = {number for number, work in self.works.items() if not work.is_begun}
        waiting, streams = dict(self._waiting), list(self._streams.values())
        self._waiting.clear()
        self._streams.clear()
        self.works.clear()
        is_closed = self.cause is Cause.CLOSED
        for number, answer in waiting.items():
            if not answer.done():
                is_moved = number in not_begun and not is_closed
                answer.set_exception(NotBegunError() if is_moved else error)
                answer.exception()
        for stream in streams:
            stream.end(error)
        self._tasks.cancel()
