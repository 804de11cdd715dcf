"""Tracks the catalogs that running statements use: executors keep them until they end."""

import itertools
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import CatalogVersion
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import ActiveStatement, CatalogSnapshot, Statement

_Held = tuple[tuple[CatalogVersion, ...], ActiveStatement]


class Releasable(Protocol):
    """What a stream holds until it ends."""

    def release(self) -> None:
        """Let go; more than once does no harm."""
        ...


@dataclass(frozen=True, slots=True)
class Pin:
    """The catalogs of one running statement."""

    _held: "dict[int, _Held]"
    _number: int

    def release(self) -> None:
        """Unpin the catalogs; more than once does no harm."""
        # A stream may be dropped by any thread, but removing a dict item is atomic.
        self._held.pop(self._number, None)


class Pins:
    """The running statements, and the catalogs that they use."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._held: dict[int, _Held] = {}

    def pin_catalogs(self, statement: Statement, *catalogs: CatalogSnapshot) -> Pin:
        """Pin these catalogs for a statement, until the pin is released."""
        number = next(self._numbers)
        tables = tuple(each.tables for each in catalogs)
        under_way = ActiveStatement(statement.sql, tables, statement.logs, self._clock())
        self._held[number] = tuple(each.version for each in catalogs), under_way
        return Pin(self._held, number)

    def pinned(self, served: CatalogVersion) -> Pinned:
        """Return the versions that executors must keep; new statements use `served`."""
        versions = (each for each, _ in list(self._held.values()))
        return Pinned(served, frozenset(itertools.chain.from_iterable(versions)))

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the running statements and the catalogs that they use."""
        return [statement for _, statement in list(self._held.values())]


class PinnedStream(WrappedStream):
    """A stream that unpins its catalogs when it ends, is closed, or is garbage-collected."""

    def __init__(self, stream: BatchStream, pin: Releasable) -> None:
        super().__init__(stream)
        self._release = weakref.finalize(self, pin.release)
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
