"""Ensures that statements read everything that was acknowledged before they started.

A change is acknowledged once its version is in the state store. So before a statement starts, the
current revisions of its datasets are read from the state store. Local readers then catch up to
these revisions. One call serves all statements that arrive while another call is running.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caraway_core.concurrency import tasks
from caraway_core.errors import ShuttingDownError, UnavailableError
from caraway_core.ids import TableName

WAIT_S = 5.0
"""The seconds that a statement waits for the state store before it is refused."""
IN_USE_S = 15.0
"""The seconds that it then waits for readers; one that hangs is known to be lost much earlier."""
_LONGEST_READ = 256 * 1024
"""Longer texts count as reading every dataset.

Searching 4 MiB for 200 names takes a second, in the process that serves all clients.
"""
Read = Callable[[Sequence[TableName]], Awaitable[Sequence[int]]]
Reach = Callable[[TableName, int], Awaitable[None]]
_NOTHING: frozenset[TableName] = frozenset()


class Mentions:
    """Finds the datasets that a statement may read, by searching its text for their names.

    View names count as the datasets that the views read. Names in literals and comments also match:
    a false match costs a shared call, whereas a missed name would return old data.
    """

    def __init__(self, datasets: Iterable[TableName], views: Mapping[TableName, str]) -> None:
        self._datasets = {name: frozenset({name}) for name in datasets}
        below = dict(self._datasets)
        for _ in views:
            found = {view: self._within(sql, below) for view, sql in views.items()}
            if all(below.get(view) == names for view, names in found.items()):
                break
            below.update(found)
        self._words = [(_word(name), names) for name, names in below.items() if names]
        self._all = frozenset(self._datasets)

    def tables_of(self, sql: str) -> frozenset[TableName]:
        """Return the datasets that a statement may read."""
        if len(sql) > _LONGEST_READ:
            return self._all
        text = sql.lower()
        found = [names for word, names in self._words if word in text]
        return frozenset().union(*found) if found else _NOTHING

    @staticmethod
    def _within(sql: str, below: Mapping[TableName, frozenset[TableName]]) -> frozenset[TableName]:
        text = sql.lower()
        return frozenset().union(*(names for name, names in below.items() if _word(name) in text))


def _word(name: TableName) -> str:
    """Return a text that every spelling of the name contains: quotes within a name are doubled."""
    return max(name.lower().rpartition(".")[2].split('"'), key=len)


@dataclass(slots=True)
class _Round:
    """A call that is about to be made, for all statements that wait for it."""

    found: "asyncio.Future[Mapping[TableName, int]]"
    names: set[TableName] = field(default_factory=set)


class Freshness:
    """Reads current revisions, and lets readers catch up to them."""

    def __init__(
        self, read: Read, reach: Reach, wait_s: float = WAIT_S, in_use_s: float = IN_USE_S
    ) -> None:
        self._read = read
        self._reach = reach
        self._wait_s = wait_s
        self._in_use_s = in_use_s
        self._next: _Round | None = None
        self._tasks = tasks.Tasks()
        self._is_reading = False
        self.calls = 0

    async def reach(self, names: frozenset[TableName]) -> None:
        """Let readers see these datasets at least as they are acknowledged now.

        Raises:
            UnavailableError: the current revisions could not be read, or reached, in time.
        """
        late = "the state store did not report the acknowledged changes in time"
        try:
            async with asyncio.timeout(self._wait_s):
                newest = await self._newest(names)
            async with asyncio.timeout(self._in_use_s):
                for name in names:
                    late = f"the acknowledged version of dataset {name!r} was not in use in time"
                    await self._reach(name, newest[name])
        except TimeoutError:
            raise UnavailableError(
                f"{late}; try again, or set runtime.query.consistency to eventual"
            ) from None

    async def aclose(self) -> None:
        """Stop the running calls."""
        await self._tasks.aclose()

    async def _newest(self, names: frozenset[TableName]) -> Mapping[TableName, int]:
        # A running call may have been answered before this statement arrived.
        if self._next is None:
            self._next = _Round(asyncio.get_running_loop().create_future())
        waiting = self._next
        waiting.names |= names
        if not self._is_reading:
            self._is_reading = True
            self._tasks.spawn(self._work(), "read newest revisions")
        return await asyncio.shield(waiting.found)

    async def _work(self) -> None:
        try:
            while (current := self._next) is not None:
                self._next = None
                await self._settle(current)
        finally:
            self._is_reading = False

    async def _settle(self, current: _Round) -> None:
        names = sorted(current.names)
        self.calls += 1
        try:
            revisions = await self._read(names)
        except BaseException as exc:
            current.found.add_done_callback(tasks.retrieve)
            current.found.set_exception(
                exc if isinstance(exc, Exception) else ShuttingDownError("the scheduler stops")
            )
            if not isinstance(exc, Exception):
                raise
        else:
            current.found.set_result(dict(zip(names, revisions, strict=True)))
