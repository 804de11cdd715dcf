"""The server in an engine process: serves one executor to the process that started it."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from caraway_core.channels.channel import Channel
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.ids import PrincipalId, TableName
from caraway_core.process import write_marks
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import SystemTable
from caraway_executor.engines import messages
from caraway_executor.engines.crossing import (
    CrossingCatalog,
    CrossingStatement,
    CrossingTables,
    ReceivingEnd,
    RowsOut,
    read,
    written,
)
from caraway_executor.engines.messages import (
    Call,
    Embedded,
    More,
    Open,
    Ping,
    PlaceDropped,
    PlanningAsked,
    Shown,
    StopCall,
    ThreadsProbe,
)
from caraway_executor.engines.reading_ahead import reading_ahead
from caraway_executor.engines.resting import Resting
from caraway_executor.engines.served import ServedMethods
from caraway_executor.engines.shared_memory import WritableMemory
from caraway_executor.engines.threads import CallThreads, current
from caraway_executor.resources.memory_in_use import OwnMemory

logger = logging.getLogger(__name__)
CREDIT = 4
"""The number of messages with rows of a stream that may be in transit to its reader."""
_LARGE_BYTES = 64 * 1024
_SOON_S, _AT_ONCE_S = 0.05, 0.002
"""The wait for the first rows of a result, and after them for its end, before it is said
that it has begun."""
_HELD_S = 2.0
"""The longest time that one batch is kept while the threads of the engine take no work."""
_SHOW_S = 10.0


class _Flow:
    """The flow control of one stream."""

    def __init__(self) -> None:
        self.credit = asyncio.Semaphore(CREDIT)
        self.begun = asyncio.Event()

    def add(self, count: int) -> None:
        """Allow this many more messages."""
        self.begun.set()
        for _ in range(count):
            self.credit.release()


class Serving:
    """Handles the messages of one channel. Each call and each stream is a separate task."""

    def __init__(
        self, served: ServedMethods, threads: CallThreads, memory: WritableMemory | None = None
    ) -> None:
        """Take what to serve, the threads that it plans in, and the memory for large batches."""
        self._served = served
        self._memory = memory
        self._executor = served.executor
        self._threads = threads
        self._inward = ReceivingEnd(self._system_table, self)
        self._tasks = tasks.Tasks()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._resting = Resting(self._tasks, self._under_way, OwnMemory())
        self._flows: dict[int, _Flow] = {}
        self._showing: dict[int, Future[pa.Table]] = {}
        self._embedding: dict[int, Future[pa.Table]] = {}
        self._numbers = count()
        self._loop = asyncio.get_running_loop()
        self.channel: Channel | None = None
        self._is_closed = False
        self._keeping = asyncio.Lock()
        """Serializes reading and sending, so that tables are sent in the order they were read."""
        served.executor.registering = self._note

    def greet(self) -> None:
        """Report that messages are read, and by which thread."""
        self._send(messages.Pong(threading.get_native_id()))

    def receive(self, message: object, body: pa.Buffer | None) -> None:
        """Handle a message; called by the event loop, in order."""
        match message:
            case Open(number, method, arguments):
                # Decode in order of arrival: a statement's logs extend those received before.
                arguments = tuple(map(self._arrived, arguments))
                self._flows[number] = _Flow()
                opening = partial(self._served.streams[method], *arguments)
                self._begin(number, self._stream(number, opening), method)
            case Call(number, method, arguments):
                arguments = tuple(map(self._arrived, arguments))
                calling = partial(self._served.calls[method], *arguments)
                self._begin(number, self._call(number, calling), method)
            case More(number, count):
                if (flow := self._flows.get(number)) is not None:
                    flow.add(count)
            case StopCall(number):
                if (task := self._under_way.get(number)) is not None:
                    task.cancel()
            case PlaceDropped(start):
                if self._memory is not None:
                    self._memory.give_back(start)
            case Ping():
                self.greet()
            case PlanningAsked(number):
                self._send(messages.PlanningTook(number, self._threads.used_s(number)))
            case ThreadsProbe():
                self._tasks.spawn(self._probe(), "probe the threads of the engine")
            case Shown(number, error):
                self._shown(self._showing, number, error, body)
            case Embedded(number, error):
                self._shown(self._embedding, number, error, body)

    def vectors(self, model: str, texts: Sequence[str], mark: str = "") -> pa.FixedSizeListArray:
        """Request vectors from the serving process; called from threads of the engine."""
        number, answer = next(self._numbers), Future[pa.Table]()
        self._embedding[number] = answer
        body = written(pa.table({"text": pa.array(texts, pa.string())}))
        vectors_wanted = messages.VectorsWanted(number, model, mark)
        self._loop.call_soon_threadsafe(self._send, vectors_wanted, body)
        try:
            return answer.result().column(0).combine_chunks()
        except CancelledError:
            raise ExecutionError("the engine process is ending") from None
        finally:
            self._embedding.pop(number, None)

    async def _probe(self) -> None:
        await self._executor.probe()
        self._send(messages.Probed())

    def close(self) -> None:
        """Cancel all work."""
        self._is_closed = True
        self._tasks.cancel()
        for each in (*self._showing.values(), *self._embedding.values()):
            each.cancel()
        self._executor.close()

    def _arrived(self, value: object) -> object:
        if isinstance(value, CrossingStatement):
            return self._inward.statement(value)
        if isinstance(value, CrossingCatalog):
            return self._inward.catalog(value)
        if isinstance(value, CrossingTables):
            return value.read()
        return value

    def _begin(self, number: int, work: Any, kind: str) -> None:
        self._send(messages.Begun(number))
        token = current.set(number)
        task = self._tasks.spawn(work, kind)
        current.reset(token)
        self._under_way[number] = task
        task.add_done_callback(partial(self._end, number))

    def _spawn_apart(
        self, work: Coroutine[object, object, None], kind: str
    ) -> "asyncio.Task[None]":
        """Run work for a call that may outlive it: what waits for a thread stays when it ends."""
        token = current.set(None)
        try:
            return self._tasks.spawn(work, kind)
        finally:
            current.reset(token)

    def _end(self, number: int, task: "asyncio.Task[None]") -> None:
        self._under_way.pop(number, None)
        self._flows.pop(number, None)
        self._resting.worked()
        left = self._threads.left(number)
        if not task.cancelled():
            return
        if left and not self._is_closed:
            self._tasks.spawn(self._stopped(number, left), "wait for a thread")
        else:
            self._send(messages.Stopped(number))

    async def _stopped(self, number: int, left: Sequence[Future[object]]) -> None:
        futures = [asyncio.wrap_future(each) for each in left]
        await asyncio.wait(futures)
        for each in futures:
            tasks.retrieve(each)
        self._send(messages.Stopped(number))

    async def _call(self, number: int, calling: Callable[[], Awaitable[object]]) -> None:
        try:
            value = await calling()
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            self._send(messages.CallFailed(number, _crossing(exc)))
        else:
            self._send(messages.Returned(number, value))

    async def _stream(self, number: int, opening: Callable[[], Awaitable[BatchStream]]) -> None:
        try:
            stream = await opening()
            try:
                is_ended = await self._send_rows(number, stream)
            finally:
                await stream.aclose()
                if stream.written is not None and self._executor.is_in_memory(stream.written):
                    await asyncio.shield(self._spawn_apart(self._keep(stream.written), "keep"))
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            self._send(messages.CallFailed(number, _crossing(exc)))
        else:
            if not is_ended:
                self._send(messages.StreamEnded(number))

    async def _send_rows(self, number: int, stream: BatchStream) -> bool:
        """Send the rows of a stream; return whether its end was sent with them."""
        serialized = stream.schema.serialize().to_pybytes()
        flow, rows = self._flows[number], RowsOut(stream.schema)
        whole = stream.traits.whole
        if whole is not None and whole.nbytes < _LARGE_BYTES:
            self._send_answer(number, serialized, stream, rows, whole)
            return True
        mark = "" if stream.written is None else write_marks.given() or write_marks.give()
        opened = messages.Opened(
            number, serialized, stream.reads_only_catalog, stream.written, mark
        )
        if stream.written is not None:
            self._send(opened)
            await flow.begun.wait()
        async with reading_ahead(stream) as ahead:
            if stream.written is None:
                # One message takes less time than three.
                only = await ahead.only_batch(_SOON_S, _AT_ONCE_S)
                if ahead.is_at_one_batch:
                    # Native code may keep all threads from the end. The statement can run again
                    # elsewhere only as long as none of its rows were sent.
                    probing = self._spawn_apart(self._executor.probe(), "probe the threads")
                    only = await ahead.only_batch_unless(probing, _HELD_S)
                if only is not None and only.nbytes < _LARGE_BYTES:
                    self._send_answer(number, serialized, stream, rows, only)
                    return True
                self._send(opened)
            while batches := await ahead.take_batches(rows.most_rows):
                await flow.credit.acquire()
                if sum(each.nbytes for each in batches) < _LARGE_BYTES:
                    sent, body, place = rows.sent(number, batches, None)
                else:
                    sent, body, place = await asyncio.to_thread(
                        rows.sent, number, batches, self._memory
                    )
                self._send(sent, body)
                if place is not None:
                    place.is_sent = True
        return False

    def _send_answer(
        self,
        number: int,
        serialized: bytes,
        stream: BatchStream,
        rows: RowsOut,
        batch: pa.RecordBatch,
    ) -> None:
        """Send a stream that has one batch."""
        steady = stream.reads_only_catalog
        answered = messages.Answered(number, serialized, steady, rows.is_whole)
        self._send(answered, rows.body(batch))

    async def _keep(self, table: TableName) -> None:
        """Send the rows of a table in memory to the serving process, to outlive this one."""
        async with self._keeping:
            self._send(messages.TableWritten(table), written(await self._executor.rows_of(table)))

    def _send(self, message: object, body: pa.Buffer | None = None) -> None:
        if self.channel is not None:
            self.channel.send(message, body)

    def _note(self, table: TableName | None) -> None:
        """Report which view is being planned; called from a thread."""
        self._loop.call_soon_threadsafe(self._send, messages.Noted(table))

    def _system_table(self, name: TableName) -> SystemTable:
        return partial(self._show, name)

    def _show(self, name: TableName, viewer: PrincipalId | None) -> pa.Table:
        """Request a system table from the serving process; called from the planning thread."""
        number, answer = next(self._numbers), Future[pa.Table]()
        self._showing[number] = answer
        asked = messages.SystemTableWanted(number, name, viewer)
        self._loop.call_soon_threadsafe(self._send, asked)
        try:
            return answer.result(_SHOW_S)
        except TimeoutError:
            raise ExecutionError(
                f"table 'runtime.{name}' was not available within {_SHOW_S:g} s; try again"
            ) from None
        finally:
            self._showing.pop(number, None)

    def _shown(
        self,
        waiting: Mapping[int, Future[pa.Table]],
        number: int,
        error: BaseException | None,
        body: pa.Buffer | None,
    ) -> None:
        answer = waiting.get(number)
        if answer is None:
            return
        if error is not None or body is None:
            answer.set_exception(error or ExecutionError("the answer has no content"))
            return
        answer.set_result(read(body))


def _crossing(exc: BaseException) -> BaseException:
    """Return the error to send to the other process; errors other than ours are logged here."""
    if isinstance(exc, CarawayError):
        return exc
    logger.error("a statement failed with an unexpected error", exc_info=exc)
    return ExecutionError("the engine failed while running the statement; the log has the cause")
