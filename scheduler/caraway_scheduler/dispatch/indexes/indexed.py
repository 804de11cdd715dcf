"""Answers searches by indexes: executors search their shares, and the best rows are merged."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.concurrency import tasks
from caraway_core.errors import (
    ExecutorLostError,
    NotDistributableError,
    ShuttingDownError,
)
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.index_orders import IndexOrder, WordOrder
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import StoredTable
from caraway_engine.rows import choosing
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.indexes.index_building import IndexBuilding, Shares, shares_of
from caraway_scheduler.dispatch.indexes.share_limits import ShareLimits
from caraway_scheduler.dispatch.planning import following
from caraway_scheduler.dispatch.single.whole import WholeRunner
from caraway_scheduler.dispatch.tasks.merging import FoundStream
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS
from caraway_scheduler.membership import Membership
from caraway_search import found_rows
from caraway_search.found_rows import FoundShares

Counted = tuple[str, tuple[str, ...], WordOrder]
"""A query of words, and the rows that were counted: a version, and the changes of its log."""
_Answers = dict[ExecutorId, tuple[pa.Table, bool]]
"""The rows of each share, and whether they stay the same while no table changes."""
_MOST_COUNTED = 1_000
_MOST_DEALT = 100


class IndexedRunner:
    """Sends the order of a statement to the executors that have the rows in memory."""

    def __init__(self, membership: Membership, whole: WholeRunner, policy: Policy) -> None:
        self._membership = membership
        self._whole = whole
        self._policy = policy
        self.building = IndexBuilding(whole, policy)
        self._counted: OrderedDict[Counted, tuple[int, ...]] = OrderedDict()
        self._limits = ShareLimits()
        self._dealt: OrderedDict[str, _Dealt] = OrderedDict()
        """The shares of the versions that were searched last, by their keys."""

    async def run_order(
        self, query_id: QueryId, statement: Statement, snapshot: CatalogSnapshot
    ) -> BatchStream:
        """Return the rows of a statement that has an order.

        Raises:
            CatalogMovedError: an executor lacks the catalog.
            NotDistributableError: it has to run as SQL.
            QueryError: the search failed on an executor.
        """
        order = statement.index
        spec = snapshot.tables.get(order.table) if order is not None else None
        version = spec.version if spec is not None else None
        if order is None or version is None:
            raise NotDistributableError(_no_index(order))
        narrowed = following.narrowed(statement, {order.table}, snapshot.tables)
        leaving: set[ExecutorId] = set()
        for _ in range(ATTEMPTS):
            shares = self._shares(version, narrowed.logs.get(version.key, ()), leaving)
            if not shares:
                break
            try:
                found, is_steady = await self._found(query_id, narrowed, order, shares, version.key)
                self.building.note(statement, snapshot.tables)
                return FoundStream(found, reads_only_catalog=is_steady and not narrowed.logs)
            except ExecutorLostError as exc:
                self._membership.lost(exc.executor_id, exc.cause)
            except _LeavingError as exc:
                leaving.add(exc.executor_id)
        raise NotDistributableError("executors were lost during the search")

    async def _found(
        self,
        query_id: QueryId,
        statement: Statement,
        order: IndexOrder,
        shares: Shares,
        version_key: str,
    ) -> tuple[pa.Table, bool]:
        """Return the rows, and whether they stay the same while no table changes."""
        by = order.by
        is_whole = None in shares.values() or order.is_explained or order.limit == 0
        if is_whole:
            return _merged(order, shares, await self._asked(query_id, statement, order, shares))
        if not isinstance(by, WordOrder) or by.statistics is not None:
            return await self._best(query_id, statement, order, shares, version_key)
        # Scores need the numbers of the whole table, which no executor has.
        key = (
            version_key,
            tuple(each.chunk.checksum for each in statement.logs.get(version_key, ())),
            by,
        )
        statistics = self._counted.get(key)
        if statistics is None:
            counting = replace(order, columns=(), ties=(), where=None, limit=0)
            counts = await self._asked(query_id, statement, counting, shares)
            counted, _ = _merged(counting, shares, counts)
            statistics = tuple(counted.column(0)[0].as_py())
        self._keep(key, statistics)
        order = replace(order, by=replace(by, statistics=statistics))
        return await self._best(query_id, statement, order, shares, version_key)

    def _keep(self, key: Counted, statistics: tuple[int, ...]) -> None:
        """Keep the numbers of the last queries: the same words are often sought again."""
        self._counted[key] = statistics
        self._counted.move_to_end(key)
        if len(self._counted) > _MOST_COUNTED:
            self._counted.popitem(last=False)

    async def _best(
        self,
        query_id: QueryId,
        statement: Statement,
        order: IndexOrder,
        shares: Shares,
        version_key: str,
    ) -> tuple[pa.Table, bool]:
        """Ask each share for the rows that it probably has, and again where it may have more."""
        limit = self._limits.limit_of(version_key, order, shares)
        answers = await self._asked(query_id, statement, replace(order, limit=limit), shares)
        found_shares = _found_shares(order, answers)
        if limit < order.limit:
            cut = zip(answers, found_shares.cut_short(limit), strict=True)
            again = {each: shares[each] for each, is_cut in cut if is_cut}
            self._limits.note(version_key, order, was_missed=bool(again))
            if again:
                answers |= await self._asked(query_id, statement, order, again)
                found_shares = _found_shares(order, answers)
        return found_shares.answer(choosing.take), _are_steady(answers)

    async def _asked(
        self, query_id: QueryId, statement: Statement, order: IndexOrder, shares: Shares
    ) -> _Answers:
        reads = [
            tasks.begin(self._share(query_id, statement, order, executor_id, pieces))
            for executor_id, pieces in shares.items()
        ]
        try:
            return dict(zip(shares, await asyncio.gather(*reads), strict=True))
        finally:
            for read in reads:
                read.cancel()

    async def _share(
        self,
        query_id: QueryId,
        statement: Statement,
        order: IndexOrder,
        executor_id: ExecutorId,
        pieces: tuple[str, ...] | None,
    ) -> tuple[pa.Table, bool]:
        wanted = replace(statement, index=replace(order, pieces=pieces))
        if pieces is not None:
            # Nothing but the index can answer for a share, and a vector takes some room.
            wanted = replace(wanted, sql="", parameters={})
        try:
            return await self._whole.rows_at(executor_id, query_id, wanted)
        except ShuttingDownError as exc:
            raise _LeavingError(executor_id) from exc

    def _shares(self, spec: StoredTable, log: Log, leaving: Collection[ExecutorId]) -> Shares:
        """Return the pieces of each executor; None stands for all of them."""
        ready = [each.executor_id for each in self._membership.ready()]
        owners = tuple(each for each in ready if each not in leaving)
        known = self._dealt.get(spec.key)
        if known is not None and known.is_of(spec, owners, has_log=bool(log)):
            return known.shares
        shares = shares_of(spec, log, owners, self._policy)
        self._dealt[spec.key] = _Dealt(spec, owners, bool(log), shares)
        self._dealt.move_to_end(spec.key)
        if len(self._dealt) > _MOST_DEALT:
            self._dealt.popitem(last=False)
        return shares


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The shares of a version among some owners."""

    spec: StoredTable
    owners: tuple[ExecutorId, ...]
    has_log: bool
    shares: Shares

    def is_of(self, spec: StoredTable, owners: tuple[ExecutorId, ...], *, has_log: bool) -> bool:
        """True if the shares belong to this version, compared by identity."""
        return self.spec is spec and self.owners == owners and self.has_log == has_log


def _merged(order: IndexOrder, shares: Shares, answers: _Answers) -> tuple[pa.Table, bool]:
    found = [rows for rows, _ in answers.values()]
    # One executor with the whole table has answered as the statement does.
    if None in shares.values():
        return found[0], _are_steady(answers)
    return found_rows.merged(order, found, choosing.take), _are_steady(answers)


def _found_shares(order: IndexOrder, answers: _Answers) -> FoundShares:
    return FoundShares(order, [rows for rows, _ in answers.values()])


def _are_steady(answers: _Answers) -> bool:
    return all(steady for _, steady in answers.values())


def _no_index(order: IndexOrder | None) -> str:
    name = order.table if order is not None else "the table"
    return f"'{name}' is not an accelerated dataset"


class _LeavingError(ShuttingDownError):
    """An executor takes no more work."""

    def __init__(self, executor_id: ExecutorId) -> None:
        super().__init__(f"executor '{executor_id}' takes no more work")
        self.executor_id = executor_id
