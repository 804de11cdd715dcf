"""Writes that no response waits for: a transaction takes all that came in a moment."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import UnavailableError

logger = logging.getLogger(__name__)
Write = Callable[[AsyncSession], Awaitable[None]]
Change = Callable[[], AbstractAsyncContextManager[AsyncSession]]
_MOST = 10_000
_AT_ONCE = 500
_GATHER_S = 0.1
"""The first write of a group waits this long for others, and for the responses that are due."""
_AGAIN_S = 1.0
_SEEN_S = 2.0
_CLOSE_S = 10.0
_RETRY_AFTER_S = 5


class LaterWrites:
    """Writes in the background, in the order in which they came.

    While the database is away they wait; a process that is killed loses those that wait.
    """

    def __init__(self, change: Change, most: int = _MOST) -> None:
        """Take what begins a transaction that changes, and how many writes may wait."""
        self._change = change
        self._most = most
        self._waiting: list[Write] = []
        self._keys: set[str] = set()
        self._tasks = Tasks()
        self._is_writing = False
        self._hurry = asyncio.Event()
        self._added = self._done = 0
        self._alone = 0
        """The number of next writes that get a transaction of their own: one of them failed."""
        self._progress = asyncio.Condition()

    def check_room(self) -> None:
        """Check that another write may be added.

        Raises:
            UnavailableError: too many wait for the database.
        """
        if len(self._waiting) >= self._most:
            raise UnavailableError(
                f"{self._most} records wait for the database; try again", _RETRY_AFTER_S
            )

    def add(self, write: Write) -> None:
        """Write soon; requests that were checked before may pass the bound."""
        self._waiting.append(write)
        self._added += 1
        if not self._is_writing:
            self._is_writing = True
            self._tasks.spawn(self._write_all(), "write records")

    def add_once(self, key: str, write: Write) -> None:
        """Write soon, unless a write with this key waits, or too many do."""
        if key in self._keys or len(self._waiting) >= self._most:
            return
        self._keys.add(key)

        async def write_once(session: AsyncSession) -> None:
            self._keys.discard(key)
            await write(session)

        self.add(write_once)

    async def written(self, within_s: float = _SEEN_S) -> None:
        """Wait until all added work is written, or until the time is over."""
        last = self._added
        if self._done < last:
            self._hurry.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._progress:
                await self._progress.wait_for(lambda: self._done >= last)

    async def aclose(self) -> None:
        """Write what waits, unless the database stays away."""
        await self.written(_CLOSE_S)
        if self._waiting:
            logger.warning("records are lost", extra={"records": len(self._waiting)})
        await self._tasks.aclose()

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GATHER_S):
                        await self._hurry.wait()
                await self._write_group()
                if not self._waiting:
                    self._hurry.clear()
        finally:
            self._is_writing = False

    async def _write_group(self) -> None:
        group = self._waiting[: 1 if self._alone else _AT_ONCE]
        try:
            async with self._change() as session:
                for write in group:
                    await write(session)
        except UnavailableError as exc:
            logger.warning(
                "records wait", extra={"records": len(self._waiting), "reason": exc.message}
            )
            await asyncio.sleep(_AGAIN_S)
            return
        # Any other failure is that of one record; the others of its group must not be lost with it.
        except Exception:
            if len(group) > 1:
                self._alone = len(group)
                return
            logger.exception("a record is lost")
        del self._waiting[: len(group)]
        self._alone = max(0, self._alone - len(group))
        async with self._progress:
            self._done += len(group)
            self._progress.notify_all()
