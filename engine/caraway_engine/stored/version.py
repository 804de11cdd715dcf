"""A version of an accelerated dataset, readable at any position of its log."""

import time
from collections.abc import Sequence
from threading import Lock
from weakref import WeakValueDictionary

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.changes import Log
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import TableName
from caraway_core.tables import StoredTable
from caraway_engine.join_orders import RowFacts, sampled
from caraway_engine.rows.held import Chunks
from caraway_engine.sharing import dealing
from caraway_engine.sharing.shares import ListedPiece
from caraway_engine.stored.content import Content, VersionRows
from caraway_engine.stored.views import VersionView
from caraway_engine.stored.wanted import MissingChunks

_UNREAD_S = 60.0


class StoredVersion:
    """A version of a dataset, and its views.

    Sessions that see the same version share one object. Its rows are in memory once, and are freed
    with the last of them.
    """

    def __init__(
        self,
        table: TableName,
        spec: StoredTable,
        partitions: int,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        self.spec = spec
        self.content = Content(table, spec, partitions, clock)
        self.names = self.content.names
        """The names of the pieces, in row order."""
        self._base = VersionView(self.content, ())
        self._newest: tuple[Log, VersionView] = (), self._base
        self._replaced: VersionView | None = None
        """The view of the log that the newest one replaces; its readers must not start over."""
        self._views: WeakValueDictionary[object, VersionView] = WeakValueDictionary()
        self._finding = Lock()
        self._facts: RowFacts | None = None

    @property
    def table(self) -> Table:
        """The table of the version without its log."""
        return self._base.table

    @property
    def is_held(self) -> bool:
        """True if any rows are held in memory for this version."""
        return self._base.is_held or self._newest[1].is_held or self.content.lineage.is_held

    def at(self, log: Log) -> VersionView:
        """Return the version at these entries of its log."""
        if not log:
            return self._base
        known, view = self._newest
        if log is known:
            return view
        with self._finding:
            # Refused entries may since have been followed by others, so do not use the length
            # alone.
            position = _position(log)
            view = self._views.get(position) or VersionView(self.content, log)
            self._views[position] = view
            newest, before = self._newest
            both = min(len(log), len(newest))
            is_other = _position(log[:both]) != _position(newest[:both])
            if is_other or len(log) >= len(newest):
                self._replaced = before if is_other else None
                self._newest = log, view
            return view

    def fill(self, chunks: Chunks) -> MissingChunks | None:
        """Fill the table without a log; see `VersionView.fill`."""
        return self._base.fill(chunks)

    def facts(self, chunks: Chunks) -> RowFacts | None:
        """Return what orders of joins depend on; None while the rows are not in memory.

        Changes since the version do not count.
        """
        if self._facts is None:
            rows = self.content.plain(self.names, chunks)
            if isinstance(rows, VersionRows):
                self._facts = sampled.facts(self.spec.schema, rows.batches)
        return self._facts

    def share(self, names: tuple[str, ...], chunks: Chunks) -> Table | MissingChunks:
        """Return a table of some pieces without a log; see `VersionView.share`."""
        return self._base.share(names, chunks)

    def rows_of(
        self, columns: Sequence[str], values: Sequence[object], chunks: Chunks, log: Log = ()
    ) -> pa.RecordBatch:
        """Return the rows with these values in the columns of the key or of an index.

        Values are Python values or Arrow scalars of the columns' types.

        Raises:
            ChunksAwayError: rows of the version are not in memory.
            ExecutionError: there is no index of these columns.
            QueryError: the changes cannot be applied, or do not fit in memory.
        """
        return self.at(log).rows_of(columns, values, chunks)

    def rows_at_hand(
        self, columns: Sequence[str], values: Sequence[object], log: Log = ()
    ) -> pa.RecordBatch | None:
        """Like `rows_of`, but return None if anything has to be read, merged or waited for."""
        content = self.content
        seeking = content.seeking(tuple(columns), values)
        if seeking is None:
            return content.no_rows
        if not content.merging.acquire(blocking=False):
            return None
        try:
            if not content.lineage.is_of(log):
                return None
            merged = content.lineage.at_hand(seeking.names, len(log), content.clock())
            return None if merged is None else content.found(seeking, merged, len(log))
        finally:
            content.merging.release()

    def let_go(self) -> None:
        """Release rows that were not read recently, except those that were read last.

        When executors join or leave, each reads a different share from then on.
        """
        before_s = self.content.clock() - _UNREAD_S
        views = self._base, self._newest[1], self._replaced
        for view in {id(each): each for each in views if each is not None}.values():
            view.let_go(before_s)
        if self.content.merging.acquire(blocking=False):
            try:
                standing = frozenset(name for names in self.content.standing for name in names)
                self.content.lineage.let_go(before_s, standing)
            finally:
                self.content.merging.release()

    def pieces(self) -> tuple[ListedPiece, ...]:
        """List the pieces that can be divided among executors."""
        return dealing.pieces(self.spec)


def _position(log: Log) -> object:
    return len(log), log[-1].chunk if log else None
