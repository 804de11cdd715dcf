"""Answers the short calls of schedulers over channels, next to the calls that come through Ray.

A call of an actor takes each side more than a millisecond of processor time, whatever it asks for.
A message over a channel takes about a tenth of that.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.channels import handshake
from caraway_core.channels.channel import Channel
from caraway_core.channels.handshake import NoProofError
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols import wire
from caraway_core.protocols.wire import PackedPage, SentPage
from caraway_core.settings import Address
from caraway_core.statements import Statement
from caraway_executor.tasks.worker import Worker

logger = logging.getLogger(__name__)
_BACKLOG = 128
_MOST_UNPROVEN = 32
"""The connections that may show their proof at once; others wait to be accepted."""
_DELAYS = Delays(0.1, 10.0)
_BY_NAME = frozenset(
    ("ask", "attend", "cancel", "close", "describe", "dismiss", "end_ask", "host", "install",
     "keep", "load", "missing", "next", "next_parts", "offer", "open", "open_task", "put_back",
     "refuse", "take", "withdraw")
)  # fmt: skip
_LARGE_BYTES = 64 * 1024
Open = Callable[[bytes], SentPage | Awaitable[SentPage]]
"""Answers a call of `open` with its packed arguments, at once or later."""


Answering = Callable[..., Awaitable[Any]]
NO_OTHERS: Mapping[str, Answering] = {}


class Opening:
    """Answers calls of `open` by a worker, in its loop: at once if that is short."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __call__(self, arguments: bytes) -> SentPage | Awaitable[SentPage]:
        """Answer a call with its packed arguments."""
        call, query_id, statement, origin = wire.unpack_call(arguments)
        page = self._worker.open_at_once(statement, origin)
        if page is not None:
            return wire.pack(page)
        return self._later(call, query_id, statement, origin)

    async def _later(
        self, call: str, query_id: QueryId, statement: Statement, origin: str
    ) -> SentPage:
        return wire.pack(await self._worker.open(query_id, statement, origin, call))


Call = Callable[[str, bytes], Awaitable[Any]]
"""Answers a call of a method by its name, with its packed arguments."""


class Calling:
    """Answers calls of the actor's methods by name, for schedulers that are in no Ray cluster."""

    def __init__(self, actor: object, others: Mapping[str, Answering] = NO_OTHERS) -> None:
        """Take calls that Ray does not carry, by name, in addition to those of the actor."""
        self._actor = actor
        self._others = others

    async def __call__(self, method: str, packed: bytes) -> object:
        """Answer a call; rows of exchanges only travel through Ray."""
        answering = self._others.get(method)
        if answering is None and method in _BY_NAME:
            answering = getattr(self._actor, method)
        if answering is None:
            raise ExecutionError(f"an executor has no call '{method}' over channels")
        if len(packed) > _LARGE_BYTES:
            arguments = await asyncio.to_thread(wire.unpack_call, packed)
        else:
            arguments = wire.unpack_call(packed)
        return await answering(*arguments)


class ChannelServer:
    """Listens on a port of its own from the start, and answers once `serve` runs."""

    def __init__(
        self, host: str, token: str, executor_id: ExecutorId, open_: Open, call: Call
    ) -> None:
        """Listen on a free port.

        Raises:
            OSError: the address is not one of this host.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.place = Address(host, self._listener.getsockname()[1])
        self._token = token
        self._executor_id = executor_id
        self._open = open_
        self._call = call
        self._tasks = Tasks()
        self._channels: set[Channel] = set()
        self._proving = asyncio.Semaphore(_MOST_UNPROVEN)

    async def serve(self) -> None:
        """Accept connections until cancelled; then close all of them."""
        loop = asyncio.get_running_loop()
        again = Backoff(_DELAYS)
        try:
            while True:
                await self._proving.acquire()
                try:
                    end, _ = await loop.sock_accept(self._listener)
                except OSError as exc:
                    # As when the process has as many files open as it may.
                    self._proving.release()
                    logger.warning("cannot accept a channel", extra={"cause": exc.strerror})
                    await asyncio.sleep(again.failed())
                    continue
                again.succeeded()
                self._tasks.spawn(self._admit(end), "admit a channel")
        finally:
            self._listener.close()
            self._tasks.cancel()
            for channel in list(self._channels):
                channel.close()

    async def _admit(self, end: socket.socket) -> None:
        try:
            end.setblocking(False)
            await handshake.as_listener(end, self._token)
            await _Caller(self).attach(end)
        except NoProofError as exc:
            end.close()
            logger.warning("connection refused", extra={"cause": exc.message})
        except BaseException:
            end.close()
            raise
        finally:
            self._proving.release()

    async def answered(self, answer: Awaitable[object]) -> Any:
        """Wait for an answer; an error is one, too."""
        try:
            return await answer
        except CarawayError as exc:
            return exc
        except Exception as exc:  # noqa: BLE001 -- it becomes the answer
            return self.failure(exc)

    def failure(self, exc: Exception) -> CarawayError:
        """Return the error for an unexpected failure."""
        cause = f"{type(exc).__name__}: {exc}".split("\n")[0]
        return ExecutionError(f"executor '{self._executor_id}': {cause}")


class _Caller:
    """The channel of one scheduler. Its calls end with it.

    A single call is cancelled by its name, through Ray.
    """

    def __init__(self, server: ChannelServer) -> None:
        self._server = server
        self._channel: Channel | None = None
        self._tasks = Tasks()

    async def attach(self, end: socket.socket) -> None:
        self._channel = await Channel.open(end, self._receive, self._lost)
        self._channel.send_at_once()
        self._server._channels.add(self._channel)

    def _lost(self) -> None:
        # The answers are not awaited any more, and the work may already run elsewhere.
        self._tasks.cancel()
        if self._channel is not None:
            self._server._channels.discard(self._channel)

    def _receive(
        self, message: tuple[int, bytes] | tuple[int, bytes, str], _body: pa.Buffer | None
    ) -> None:
        number, arguments, *method = message
        try:
            opened = (
                self._server._call(method[0], arguments)
                if method
                else self._server._open(arguments)
            )
        except CarawayError as exc:
            self._send(number, exc)
            return
        except Exception as exc:  # noqa: BLE001 -- it becomes the answer
            self._send(number, self._server.failure(exc))
            return
        if isinstance(opened, SentPage):
            self._send(number, opened)
        else:
            self._tasks.spawn(self._later(number, opened), "answer a call")

    async def _later(self, number: int, answer: Awaitable[object]) -> None:
        self._send(number, await self._server.answered(answer))

    def _send(self, number: int, answer: object) -> None:
        assert self._channel is not None
        body = None
        if isinstance(answer, PackedPage) and isinstance(answer.rows, pa.Buffer):
            body, answer = answer.rows, replace(answer, rows=None)
        self._channel.send((number, answer), body)
