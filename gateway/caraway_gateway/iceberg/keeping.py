"""Keeps each loaded table for as long as it is valid, and loads it once at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import TableName
from caraway_gateway.iceberg.loaded_tables import LoadedTable

Basis = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The way to load a table: its basis, the work, and the age that it may reach."""

    basis: Basis
    load: Callable[[], Coroutine[Any, Any, LoadedTable]]
    lag_s: float = 0.0
    """Time for which it is valid although its basis has changed."""


@dataclass(slots=True)
class HeldTable:
    """A table that was loaded, or is being loaded."""

    basis: Basis
    work: asyncio.Task[LoadedTable]
    began_s: float
    _renewed: LoadedTable | None = None
    _answer: bytes = field(default=b"", repr=False)

    @property
    def table(self) -> LoadedTable:
        """The table, once the work has ended well."""
        return self._renewed or self.work.result()

    def renew(self, table: LoadedTable) -> None:
        """Replace the table by one that was found later and lists other snapshots."""
        if table.metadata != self.table.metadata:
            self._answer = b""
        self._renewed = table

    def answer(self) -> bytes:
        """Return the answer to clients, once the work has ended well."""
        if not self._answer:
            self._answer = self.table.document()
        return self._answer


class LoadedTables:
    """The tables that were loaded, by name."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._kept: dict[TableName, HeldTable] = {}
        self._clock = clock

    async def get(self, name: TableName, plan: TablePlan) -> HeldTable:
        """Return a table once it is loaded.

        Passes on what its work raises; the next call tries again.
        """
        kept = self._holding(name, plan)
        await asyncio.shield(kept.work)
        return kept

    def last(self, name: TableName) -> LoadedTable | None:
        """Return the last loaded state of a table, unless a newer one is being loaded."""
        kept = self._kept.get(name)
        is_there = kept is not None and kept.work.done() and not kept.work.cancelled()
        if kept is None or not is_there or kept.work.exception() is not None:
            return None
        return kept.table

    def retain(self, names: Collection[TableName]) -> None:
        """Forget all tables but these."""
        for name in self._kept.keys() - set(names):
            self._kept.pop(name).work.cancel()

    async def aclose(self) -> None:
        """Stop loading tables."""
        work = [kept.work for kept in self._kept.values()]
        self.retain(())
        if work:
            await asyncio.wait(work)

    def _holding(self, name: TableName, plan: TablePlan) -> HeldTable:
        kept = self._kept.get(name)
        if kept is None or not self._holds(kept, plan):
            work = tasks.begin(plan.load(), "load an Iceberg table")
            kept = self._kept[name] = HeldTable(plan.basis, work, self._clock())
        return kept

    def _holds(self, kept: HeldTable, plan: TablePlan) -> bool:
        if not kept.work.done():
            return _same(kept.basis, plan.basis) or plan.lag_s > 0
        if kept.work.cancelled() or kept.work.exception() is not None:
            return False
        return _same(kept.basis, plan.basis) or self._clock() - kept.began_s < plan.lag_s


def _same(one: Basis, other: Basis) -> bool:
    """Compare by identity, as the catalog does; numbers, texts and columns by value."""
    return len(one) == len(other) and all(
        a is b or (isinstance(a, int | str | tuple | pa.Schema) and a == b)
        for a, b in zip(one, other, strict=True)
    )
