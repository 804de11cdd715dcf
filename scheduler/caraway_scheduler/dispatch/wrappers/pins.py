"""Tracks the catalogs that running statements use: executors keep them until they end."""

import itertools
import time
import weakref
from collections.abc import Callable, Sequence

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import CatalogVersion
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import ActiveStatement, CatalogSnapshot, Statement


class Pins:
    """The running statements, and the catalogs that they use."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._held: dict[int, tuple[tuple[CatalogVersion, ...], ActiveStatement]] = {}

    def pin_catalogs(self, statement: Statement, *catalogs: CatalogSnapshot) -> Callable[[], None]:
        """Pin these catalogs for a statement, and return a function that unpins them."""
        number = next(self._numbers)
        tables = tuple(each.tables for each in catalogs)
        under_way = ActiveStatement(statement.sql, tables, statement.logs, self._clock())
        self._held[number] = tuple(each.version for each in catalogs), under_way

        def release() -> None:
            # A stream may be dropped by any thread, but removing a dict item is atomic.
            self._held.pop(number, None)

        return release

    def pinned(self, served: CatalogVersion) -> Pinned:
        """Return the versions that executors must keep; new statements use `served`."""
        versions = (each for each, _ in list(self._held.values()))
        return Pinned(served, frozenset(itertools.chain.from_iterable(versions)))

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the running statements and the catalogs that they use."""
        return [statement for _, statement in list(self._held.values())]


class PinnedStream(WrappedStream):
    """A stream that unpins its catalogs when it ends, is closed, or is garbage-collected."""

    def __init__(self, stream: BatchStream, release: Callable[[], None]) -> None:
        super().__init__(stream)
        self._release = weakref.finalize(self, release)
        self._release.atexit = False

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except BaseException:
            self._release()
            raise

    async def aclose(self) -> None:
        """Close the stream and unpin its catalogs."""
        try:
            await self._stream.aclose()
        finally:
            self._release()
