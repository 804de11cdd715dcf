"""Finds out when the engine's threads of this process take no work, and what has to leave them."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from caraway_core.concurrency import tasks
from caraway_executor.resources.usage import used_s

_LOOK_S = 0.05
PROBE_AFTER_S = 0.1
"""Work that takes longer is a reason to ask whether others have their turn."""
STARVED_S = 0.6
"""Threads that compute, and take no work for longer, are starved."""
STARVED_CORES = 0.8
SHORTLY_S = 10.0
"""What began so long before the threads were first found busy may be what keeps them."""


class LeftError(Exception):
    """Work left the threads of this process; `is_suspect` says that it may be what keeps them."""

    def __init__(self, *, is_suspect: bool) -> None:
        super().__init__("the engine takes no work")
        self.is_suspect = is_suspect


class Stay:
    """Work in the threads of this process, which it leaves when they are starved."""

    def __init__(self, threads: "OwnThreads") -> None:
        self.can_leave = True
        self.began_s = self.waits_since_s = asyncio.get_running_loop().time()
        self._threads = threads
        self._task: asyncio.Task[object] | None = None
        self._left: LeftError | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the time in which it waits for the threads.

        Raises:
            LeftError: it has to leave.
        """
        if self.can_leave and self._threads.are_starved:
            raise LeftError(is_suspect=self.began_s < self._threads.starved_since_s)
        self._task = asyncio.current_task()
        assert self._task is not None
        before = self._task.cancelling()
        self._threads.enter(self)
        try:
            yield
        except asyncio.CancelledError:
            # As in `asyncio.timeout`: its owner may have cancelled it as well.
            if self._left is not None and self._task.uncancel() <= before:
                raise self._left from None
            raise
        finally:
            self._threads.left(self)
            self._task = None

    async def until_free(self, work: asyncio.Future[object], most_s: float) -> None:
        """Wait until the threads take other work, or the work given is done."""
        probing = tasks.begin(self._threads.probe(), "probe the threads")
        try:
            await asyncio.wait((work, probing), timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            probing.cancel()

    def leave(self, *, is_suspect: bool) -> None:
        """Make it leave, if it can."""
        if self.can_leave and self._task is not None and self._left is None:
            self._left = LeftError(is_suspect=is_suspect)
            self._task.cancel()


class WorkOfThreads(Protocol):
    """Whose work is in the threads that are watched."""

    async def probe(self) -> None:
        """Do work in the threads that takes no time."""
        ...

    def note_busy(self) -> None:
        """Note that work takes long."""
        ...

    def note_starved(self, *, are_starved: bool) -> None:
        """Note that the threads begin or cease to take no other work."""
        ...


class OwnThreads:
    """Watches the engine's threads of this process while work is in them.

    Native code that computes one value for long does not yield to other statements. Only work that
    takes no time tells it from other work that uses all cores: see decision 0059.
    """

    def __init__(self, work: WorkOfThreads) -> None:
        self.are_starved = False
        self.starved_since_s = 0.0
        """When the probe was sent that has no answer; what began later does not keep them."""
        self._work = work
        self._stays: set[Stay] = set()
        self._tasks = tasks.Tasks()

    def enter(self, stay: Stay) -> None:
        """Count work that begins to wait; `left` follows."""
        stay.waits_since_s = asyncio.get_running_loop().time()
        self._stays.add(stay)
        if not self._tasks:
            self._tasks.spawn(self._watch(), "watch the threads of the engine")

    def left(self, stay: Stay) -> None:
        """Count work no more."""
        self._stays.discard(stay)

    async def probe(self) -> None:
        """Return once the threads have done work that takes no time."""
        await self._work.probe()

    def close(self) -> None:
        """Stop watching."""
        self._tasks.cancel()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._stays:
            await asyncio.sleep(_LOOK_S)
            oldest_s = min((each.waits_since_s for each in self._stays), default=loop.time())
            if loop.time() - oldest_s > PROBE_AFTER_S:
                self._work.note_busy()
                await self._probed()

    async def _probed(self) -> None:
        loop = asyncio.get_running_loop()
        since_s, before_s = loop.time(), used_s(os.getpid())
        probing = tasks.begin(self._work.probe())
        try:
            while not probing.done():
                await asyncio.wait((probing,), timeout=STARVED_S if not self.are_starved else None)
                # On a busy machine it may have had no processor.
                used = used_s(os.getpid()) - before_s
                if not probing.done() and used > STARVED_S * STARVED_CORES:
                    self._starve(since_s)
        finally:
            probing.cancel()
            if self.are_starved:
                self.are_starved = False
                self._work.note_starved(are_starved=False)

    def _starve(self, since_s: float) -> None:
        self.are_starved, self.starved_since_s = True, since_s
        self._work.note_starved(are_starved=True)
        for stay in list(self._stays):
            if stay.began_s >= since_s - SHORTLY_S:
                stay.leave(is_suspect=stay.began_s < since_s)
