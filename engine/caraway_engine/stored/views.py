"""A version at one position of its log, loaded as far as it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_engine.rows.held import Chunks
from caraway_engine.rows.lineages import Lineage
from caraway_engine.rows.merging import Merged
from caraway_engine.rows.units import RowUnits
from caraway_engine.stored import making
from caraway_engine.stored.content import Content, VersionRows
from caraway_engine.stored.wanted import ChunksAwayError, MissingChunks, check_present


@dataclass(slots=True, eq=False)
class StoredShare:
    """Some pieces of a version at one position, in memory."""

    table: Table
    holders: Sequence[object]
    used_s: float = 0.0
    units: RowUnits | None = None
    """Its rows as indexes see them, once a search has asked."""

    def fill(self, chunks: Chunks) -> None:
        """Do nothing: the rows are already in memory."""

    def listed(self, chunks: Chunks) -> Table:
        """Return its table."""
        return self.table


class VersionView:
    """A version at one position of its log: its table, and tables of its shares.

    Keep the view for as long as one of its tables is read.
    """

    def __init__(self, content: Content, log: Log) -> None:
        self.count = len(log)
        self._log = log
        self._content = content
        self._lineage: Lineage | None = None
        self._is_plain = not log and content.spec.keys is None
        self._filled: Sequence[object] | None = None
        self._units: RowUnits | None = None
        """All rows as indexes see them, once a search has asked."""
        self._shares: dict[tuple[str, ...], StoredShare] = {}
        self._listed: StoredShare | None = None
        """The rows of the table in large batches, once a statement has listed them."""
        self._lock = Lock()
        self.table = making.table([[]] * content.partitions, content.spec.schema)

    @property
    def name(self) -> TableName:
        """The name of the dataset."""
        return self._content.table

    @property
    def is_held(self) -> bool:
        """True if any rows are held in memory for this view."""
        return bool(self._filled) or any(each.holders for each in self._shares.copy().values())

    def fill(self, chunks: Chunks) -> MissingChunks | None:
        """Load the rows of the table, if not done yet, or return the chunks that are missing.

        Plans that were made earlier read these rows, too.

        Raises:
            QueryError: the changes cannot be applied, or do not fit in memory.
        """
        if self._filled is not None:
            return None
        with self._lock:
            if self._filled is None:
                rows = self._rows(self._content.names, chunks)
                if isinstance(rows, MissingChunks):
                    return rows
                making.append(self.table, rows.batches, self._content.spec.schema)
                self._filled = rows.holders
        return None

    def listed(self, chunks: Chunks) -> Table:
        """Return a table with the same rows, for statements that only list them.

        Raises:
            ChunksAwayError: they are not in memory.
            QueryError: the changes cannot be applied, or do not fit in memory.
        """
        with self._lock:
            if self._listed is None:
                rows = self._rows(self._content.names, chunks)
                if isinstance(rows, MissingChunks):
                    raise ChunksAwayError([rows])
                table = making.listed(rows.batches, self._content.spec.schema)
                self._listed = StoredShare(table, rows.holders)
            return self._listed.table

    def share(self, names: tuple[str, ...], chunks: Chunks) -> Table | MissingChunks:
        """Return a table of some of the pieces, or the chunks that are missing.

        Raises:
            ExecutionError: the version has no such piece.
            QueryError: the changes cannot be applied, or do not fit in memory.
        """
        if names == self._content.names:
            return self.fill(chunks) or self.table
        part = self.part(names, chunks)
        return part if isinstance(part, MissingChunks) else part.table

    def part(self, names: tuple[str, ...], chunks: Chunks) -> StoredShare | MissingChunks:
        """Like `share`, but also return the objects to keep while the table is read."""
        with self._lock:
            share = self._shares.get(names)
            if share is None:
                rows = self._rows(names, chunks)
                if isinstance(rows, MissingChunks):
                    return rows
                parts = making.divide_batches(rows.batches, self._content.partitions)
                share = StoredShare(making.table(parts, self._content.spec.schema), rows.holders)
                self._shares[names] = share
            share.used_s = self._content.clock()
            return share

    def load(self, names: tuple[str, ...], chunks: Chunks) -> int:
        """Load some of the pieces for a task with a share of them, and return their row count.

        Merged batches are left to the readers, because changes may arrive faster than reads.

        Raises:
            ChunksAwayError: they are not in memory.
            ExecutionError: the version has no such piece.
            QueryError: they cannot be merged, or do not fit in memory.
        """
        self._content.stand_by(names)
        if self._is_plain:
            check_present([self.share(names, chunks)])
            return sum(each.row_count for name in names for each in self._content.infos(name))
        merged = self._merged(names, chunks)
        if isinstance(merged, MissingChunks):
            raise ChunksAwayError([merged])
        with self._content.merging:
            return sum(each.count(self.count) for each in merged)

    def rows_of(
        self, columns: Sequence[str], values: Sequence[object], chunks: Chunks
    ) -> pa.RecordBatch:
        """Return the rows with a key; see `StoredVersion.rows_of`."""
        content = self._content
        seeking = content.seeking(tuple(columns), values)
        if seeking is None:
            return content.no_rows
        # A lookup says nothing about what scans read, so it does not count as a read.
        merged = self._merged(seeking.names, chunks, is_scan=False)
        if isinstance(merged, MissingChunks):
            raise ChunksAwayError([merged])
        with content.merging:
            return content.found(seeking, merged, self.count)

    def units(self, names: tuple[str, ...] | None, chunks: Chunks) -> RowUnits:
        """Return some of the pieces, or all, batch by batch, for indexes.

        Raises:
            ChunksAwayError: they are not in memory.
            ExecutionError: the version has no such piece.
            QueryError: they cannot be merged, or do not fit in memory.
        """
        content = self._content
        wanted = content.names if names is None else names
        if self._is_plain:
            return self._plain_units(wanted, chunks)
        merged = self._merged(wanted, chunks)
        if isinstance(merged, MissingChunks):
            raise ChunksAwayError([merged])
        with content.merging:
            return RowUnits(unit for each in merged for unit in each.units(self.count))

    def let_go(self, before_s: float) -> None:
        """Release shares that were not read since a time, except the one that was read last."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            last = max((each.used_s for each in self._shares.values()), default=0.0)
            least = min(before_s, last)
            self._shares = {
                names: each
                for names, each in self._shares.items()
                if each.used_s >= least or names in self._content.standing
            }
        finally:
            self._lock.release()

    def _plain_units(self, names: tuple[str, ...], chunks: Chunks) -> RowUnits:
        # A table of the rows keeps them in memory, and with them their segments.
        is_whole = names == self._content.names
        share = self.fill(chunks) if is_whole else self.part(names, chunks)
        if isinstance(share, MissingChunks):
            raise ChunksAwayError([share])
        units = self._units if share is None else share.units
        if units is not None:
            return units
        plain_units = self._content.plain_units(names, chunks)
        if isinstance(plain_units, MissingChunks):
            raise ChunksAwayError([plain_units])
        units = RowUnits(plain_units)
        if share is None:
            self._units = units
        else:
            share.units = units
        return units

    def _rows(self, names: tuple[str, ...], chunks: Chunks) -> VersionRows | MissingChunks:
        content = self._content
        if self._is_plain:
            return content.plain(names, chunks)
        merged = self._merged(names, chunks)
        if isinstance(merged, MissingChunks):
            return merged
        with content.merging:
            seen = [one for each in merged for one in each.seen(self.count)]
        return VersionRows([each.batch for each in seen], [each.holder for each in seen])

    def _merged(
        self, names: tuple[str, ...], chunks: Chunks, *, is_scan: bool = True
    ) -> Sequence[Merged] | MissingChunks:
        content = self._content
        found = None
        while found is None:
            with content.merging:
                lineage = content.lineage_of(self._log, self._lineage)
                # The base view reads any lineage, so it must not keep one in memory.
                self._lineage = lineage if self._log else None
                found = lineage.bring(names, self.count, chunks, content.clock(), is_scan=is_scan)
        merged, away = found
        return MissingChunks(content.table, content.spec, away) if away else merged
