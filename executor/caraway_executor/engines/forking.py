"""The client of the fork server, in the serving process."""

import asyncio
import logging
import math
import os
import pickle
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ShuttingDownError, UnavailableError
from caraway_executor.engines import shared_memory
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.messages import EngineOptions, Exited, Forked, ForkRequest
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.shared_memory import ReadableMemory
from caraway_executor.engines.starting import ForkServer

logger = logging.getLogger(__name__)
_START_S = 60.0
_STATUS_S = 1.0
_MOST_BYTES = 64 * 1024
_DELAYS = Delays(0.5, 30.0, jitter=0.2)
OnLost = Callable[[EngineProcess], None]


class Forking:
    """Starts engine processes through a fork server, which it restarts when that ends."""

    def __init__(
        self,
        on_lost: OnLost,
        server: ForkServer | None = None,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        """Take a fork server that is already running, or start one."""
        self._on_lost = on_lost
        self._server: ForkServer | None = server or ForkServer()
        self._cooldown = Cooldown(_DELAYS, clock)
        self._numbers = count()
        self._forked: dict[int, asyncio.Future[int]] = {}
        self._processes: dict[int, tuple[EngineProcess, OnLost]] = {}
        self._is_reading = False
        self._is_closed = False

    async def fork(self, options: EngineOptions, on_lost: OnLost | None = None) -> EngineProcess:
        """Start an engine process, with its own `on_lost` if there is one.

        Raises:
            ShuttingDownError: all engine processes were ended.
            UnavailableError: the fork server does not respond, or cools down after failures.
        """
        if self._is_closed:
            raise _closed()
        loop = asyncio.get_running_loop()
        server = self._server or self._started()
        if not self._is_reading:
            loop.add_reader(server.control, self._read)
            self._is_reading = True
        number = next(self._numbers)
        forked = self._forked[number] = loop.create_future()
        ours, theirs = socket.socketpair()
        shared: ReadableMemory | None = None
        try:
            with theirs, _memory() as memory:
                request = pickle.dumps(ForkRequest(number, options))
                socket.send_fds(server.control, [request], [theirs.fileno(), *memory])
                shared = ReadableMemory(*memory) if memory else None
            async with asyncio.timeout(_START_S):
                pid = await forked
        except (OSError, TimeoutError) as exc:
            ours.close()
            if self._server is server:  # Otherwise another call has already replaced it.
                self._begin_again()
            raise _unavailable(self._cooldown.left_s) from exc
        except BaseException:
            ours.close()
            raise
        finally:
            self._forked.pop(number, None)
        self._cooldown.succeeded()
        process = EngineProcess(pid, self._lost, shared)
        if self._is_closed:  # Between the answer of the fork server and now.
            ours.close()
            process.kill(Cause.CLOSED)
            raise _closed()
        self._processes[pid] = process, on_lost or self._on_lost
        await process.connect(ours)
        return process

    def close(self) -> None:
        """End all engine processes, and the fork server unless it is shared."""
        self._is_closed = True
        for forked in self._forked.values():
            if not forked.done():
                forked.set_exception(_closed())
        for process, _ in list(self._processes.values()):
            process.kill(Cause.CLOSED)
            process.fail_all()
        self._processes.clear()
        self._leave()
        if self._server is not None and not self._server.is_shared:
            self._server.close()

    def _begin_again(self) -> None:
        """Replace a fork server that failed; have none if the next one cannot start."""
        self._leave()
        if self._server is not None:
            self._server.close()
            self._server = None
        self._cooldown.failed()
        with suppress(UnavailableError):
            self._started()

    def _started(self) -> ForkServer:
        if wait_s := self._cooldown.left_s:
            raise _unavailable(wait_s)
        try:
            self._server = ForkServer()
        except OSError as exc:
            self._cooldown.failed()
            raise _unavailable(self._cooldown.left_s) from exc
        return self._server

    def _leave(self) -> None:
        if self._is_reading and self._server is not None:
            with suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._server.control)
        self._is_reading = False

    def _read(self) -> None:
        assert self._server is not None  # Its reader is removed with it.
        try:
            received = self._server.control.recv(_MOST_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            logger.error("the fork server of the engine ended")
            self._begin_again()
            for forked in self._forked.values():
                if not forked.done():
                    forked.set_exception(_unavailable(self._cooldown.left_s))
            return
        message = pickle.loads(received)  # noqa: S301 -- from its own child process
        if isinstance(message, Forked):
            answer = self._forked.get(message.number)
            if answer is not None and not answer.done():
                answer.set_result(message.pid)
        elif isinstance(message, Exited):
            self._exited(message)

    def _exited(self, message: Exited) -> None:
        process, on_lost = self._processes.pop(message.pid, (None, self._on_lost))
        if process is not None:
            if process.cause is None:
                process.cause = Cause.from_status(message.status)
            process.close()
            on_lost(process)

    def _lost(self, process: EngineProcess) -> None:
        """Wait a moment for the exit status of a process whose channel is closed."""
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_later(_STATUS_S, self._give_up, process)

    def _give_up(self, process: EngineProcess) -> None:
        _, on_lost = self._processes.pop(process.pid, (None, None))
        if on_lost is not None:
            process.cause = process.cause or Cause.KILLED
            on_lost(process)


class ForkingShare:
    """The engine processes of one owner, where several share a fork server."""

    def __init__(self, forking: Forking, on_lost: OnLost) -> None:
        self._forking = forking
        self._on_lost = on_lost
        self._processes: set[EngineProcess] = set()
        self._is_closed = False

    async def fork(self, options: EngineOptions) -> EngineProcess:
        """Start an engine process; see `Forking.fork`."""
        if self._is_closed:
            raise _closed()
        process = await self._forking.fork(options, self._lost)
        if self._is_closed:
            process.kill(Cause.CLOSED)
            raise _closed()
        self._processes.add(process)
        return process

    def close(self) -> None:
        """End the processes of this owner."""
        self._is_closed = True
        for process in self._processes:
            process.kill(Cause.CLOSED)
            process.fail_all()

    def _lost(self, process: EngineProcess) -> None:
        self._processes.discard(process)
        self._on_lost(process)


@contextmanager
def _memory() -> Iterator[tuple[int, ...]]:
    """Yield the descriptor of new memory to share; none where the system provides none."""
    try:
        descriptor = shared_memory.create()
    except OSError:
        logger.warning("no memory can be shared with engine processes", exc_info=True)
        yield ()
        return
    try:
        yield (descriptor,)
    finally:
        os.close(descriptor)


def _closed() -> ShuttingDownError:
    return ShuttingDownError("the runtime is shutting down; its engine takes no more work")


def _unavailable(wait_s: float) -> UnavailableError:
    return UnavailableError("no engine process can be started; try again", 2 + math.ceil(wait_s))
