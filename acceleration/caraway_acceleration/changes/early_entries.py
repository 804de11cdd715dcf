"""Stores the rows of an upload while they arrive, as log entries that no version names yet."""

import asyncio
from dataclasses import dataclass, field, replace

import pyarrow as pa

from caraway_acceleration.changes import changing, log_entries
from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.versions import making
from caraway_core import changes
from caraway_core.changes import Changes, LogEntry
from caraway_core.concurrency import tasks
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import QueryCancelledError
from caraway_core.protocols.results import ResultStore
from caraway_core.statements import GivenRows

_WRITES = 4
"""The most entries of one upload that are stored at once. They wait for the disk."""


@dataclass(frozen=True, slots=True)
class EarlyRows(GivenRows):
    """Rows of a statement with the changes that insert them, where their entries are stored.

    Other processes receive the rows alone.
    """

    changes: Changes | None = field(default=None, repr=False, compare=False)


class EarlyEntries:
    """The entries of one upload, under a key of their own. Use it on one event loop.

    They count with the version that names them. What a process leaves that ends before is removed
    like the chunks of failed refreshes.
    """

    def __init__(
        self, dataset: Changeable, results: ResultStore, owned: Tasks, *, replaces: bool
    ) -> None:
        """Take the dataset as it is now; with `replaces`, the rows take the place of all others."""
        self._dataset = dataset
        self._results = results
        self._owned = owned
        self._replaces = replaces
        self._key = making.key_of(dataset.name)
        self._is_broken = False
        self._turns = asyncio.Semaphore(_WRITES)
        self._writes: list[asyncio.Task[tuple[Changes, LogEntry]]] = []

    def add(self, rows: pa.Table) -> None:
        """Begin to store more rows, in columns of the dataset and in its types."""
        number = len(self._writes)
        self._writes.append(tasks.begin(self._write(number, rows), "store rows of an upload"))

    async def finished(self) -> Changes:
        """Return the changes of all rows once they are durable.

        Raises:
            CarawayError: they cannot be changes of the dataset, or cannot be stored.
        """
        written = [await asyncio.shield(each) for each in self._writes]
        joined = changes.joined([part for part, _ in written])
        return replace(joined, entries=tuple(entry for _, entry in written))

    def discard(self) -> None:
        """Remove what is stored, because no version will name it."""
        self._is_broken = True
        self._owned.spawn(self._remove(), "remove a broken upload", dataset=self._dataset.name)

    async def _write(self, number: int, rows: pa.Table) -> tuple[Changes, LogEntry]:
        replaces = self._replaces and not number
        async with self._turns:
            if self._is_broken:
                raise QueryCancelledError("the upload was not whole")
            part = await asyncio.to_thread(changing.given, rows, self._dataset, replaces=replaces)
            assert part is not None
            return part, await log_entries.write(self._results, self._key, number, part.rows)

    async def _remove(self) -> None:
        # A thread that writes cannot be interrupted, and its chunk would outlive the others.
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self._results.delete(self._key)
