"""Runs the orders of searches on an executor, over the rows that it has in memory."""

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from caraway_core.errors import CarawayError, NotDistributableError
from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.held import Chunks
from caraway_engine.rows.units import RowUnit
from caraway_engine.sessions import masks
from caraway_engine.sessions.masks import RowFilter
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import VersionView

if TYPE_CHECKING:
    from caraway_executor.indexes.kept import KeptSegments


_SHORT_S = 0.005
_FEW_ROWS = 100
_SHORT_TEXT = 200
_Kind = tuple[TableName, tuple[str, ...], bool]


class IndexedSearches:
    """Searches the versions of a process. Its methods block; threads may share it."""

    def __init__(self, chunks: Chunks, settings: EngineSettings) -> None:
        self._chunks = chunks
        self._settings = settings
        self._kept: KeptSegments | None = None
        self._context: object = None
        self._filters: WeakKeyDictionary[VersionView, tuple[object, RowFilter]] = (
            WeakKeyDictionary()
        )
        self._making = Lock()
        self._took_s: dict[_Kind, float] = {}
        """The processor time of the last search of each kind."""

    def at_once(self, session: Session, statement: Statement) -> tuple[pa.RecordBatch, bool] | None:
        """Return what `answered` does; None if that could take much longer than to wake a thread.

        Filters are statements, and logs may have to be merged. How long all else takes is known
        from the last search of its kind.

        Raises: as `answered`.
        """
        order = statement.index
        assert order is not None
        if order.where is not None or order.is_explained or statement.logs:
            return None
        if isinstance(order.by, WordOrder) and len(order.by.text) > _SHORT_TEXT:
            return None  # Its words decide how long it takes, not the search before.
        if self._took_s.get(_kind(order), math.inf) > _SHORT_S:
            return None
        return self.answered(session, statement, builds=False)

    def answered(
        self, session: Session, statement: Statement, *, builds: bool = True
    ) -> tuple[pa.RecordBatch, bool]:
        """Return the rows of a statement that has an order.

        The last value says whether they stay the same until the catalog changes.

        Raises:
            ChunksAwayError: rows are not in memory.
            NotDistributableError: no index can answer it, or it `builds` none; the statement can.
            QueryError: rows or indexes do not fit in memory.
        """
        began_s = time.thread_time()
        # Imported here: numpy and faiss are slow to import, and most processes never search.
        from caraway_executor.indexes import explaining, searching

        order = statement.index
        assert order is not None
        version = session.versions.by_name.get(order.table)
        if version is None:
            raise NotDistributableError(f"'{order.table}' is not an accelerated dataset")
        log = statement.logs.get(version.spec.key, ())
        view = version.at(log)
        units = view.units(order.pieces, self._chunks)
        filters: list[masks.ContextFilter] = []

        def make_filter() -> masks.ContextFilter:
            filters.append(self._filter(view, order.pieces, units))
            return filters[-1]

        share = searching.SearchedShare(
            order.table, version.spec.schema, units, make_filter, builds
        )
        answer = explaining.explained if order.is_explained else searching.answered
        rows = answer(order, share, self._segments())
        self._took_s[_kind(order)] = time.thread_time() - began_s
        return rows, not log and not any(each.is_volatile for each in filters)

    def prepare(self, view: VersionView, pieces: tuple[str, ...]) -> None:
        """Build what recent searches of a dataset wanted, for rows of a version that is loaded."""
        if self._kept is not None:
            # Away chunks, or changes that fail, are for those who read them.
            with suppress(CarawayError):
                self._kept.prepare(view.name, view.units(pieces, self._chunks))

    def close(self) -> None:
        """Build nothing more in the background."""
        if self._kept is not None:
            self._kept.close()

    def _segments(self) -> "KeptSegments":
        from caraway_executor.indexes.kept import KeptSegments

        with self._making:
            if self._kept is None:
                self._kept = KeptSegments(self._chunks)
            return self._kept

    def _filter(
        self, view: VersionView, pieces: object, units: Sequence[RowUnit]
    ) -> masks.ContextFilter:
        with self._making:
            if self._context is None:
                self._context = masks.context(self._settings)
            known = self._filters.get(view)
        if known is None or known[0] != pieces:
            known = pieces, RowFilter(view.name, units)
            with self._making:
                self._filters[view] = known
        return masks.ContextFilter(known[1], self._context)


def _kind(order: IndexOrder) -> _Kind:
    """Return what mostly decides how long a search takes: its indexes, and how much it returns."""
    by = order.by
    columns = (by.column,) if isinstance(by, VectorOrder) else by.columns
    return order.table, columns, order.limit > _FEW_ROWS
