"""Remembers which indexes executors have built, and lets others build them before they search."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from caraway_core.changes import Log
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.index_orders import VectorOrder
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_engine.rows import entries
from caraway_engine.sharing import dealing
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.single.whole import WholeRunner

Shares = Mapping[ExecutorId, tuple[str, ...] | None]
"""The pieces that each executor searches; None stands for all of them."""
IndexKey = tuple[TableName, str, tuple[str, ...]]
"""A table, the kind of an index and its columns."""


class IndexBuilding:
    """The statements that built indexes, by what they indexed."""

    def __init__(self, whole: WholeRunner, policy: Policy) -> None:
        self._whole = whole
        self._policy = policy
        self._built: dict[IndexKey, Statement] = {}

    def note(self, statement: Statement, tables: Container[TableName]) -> None:
        """Remember that executors have built an index; forget those of other tables."""
        order = statement.index
        if order is None or not order.is_built:
            return
        by = order.by
        columns = (by.column,) if isinstance(by, VectorOrder) else by.columns
        self._built[order.table, type(by).__name__, columns] = statement
        self._built = {key: each for key, each in self._built.items() if key[0] in tables}

    async def build(
        self,
        table: TableName,
        spec: StoredTable,
        log: Log,
        owners: Sequence[ExecutorId],
        executor_id: ExecutorId,
    ) -> None:
        """Let one owner index its future share of a version that `owners` will divide.

        Raises:
            CatalogMovedError: the executor lacks the catalog.
            QueryError, ExecutorLostError, ShuttingDownError: it failed there.
        """
        shares = shares_of(spec, log, owners, self._policy)
        if executor_id not in shares:
            return
        for statement in [each for key, each in self._built.items() if key[0] == table]:
            assert statement.index is not None
            order = replace(statement.index, pieces=shares[executor_id])
            logs = {spec.key: log} if log else {}
            wanted = replace(statement, index=order, logs=logs, catalog_version=None)
            stream = await self._whole.at(executor_id, new_query_id(), wanted)
            async for _ in stream:
                pass


def shares_of(spec: StoredTable, log: Log, owners: Sequence[ExecutorId], policy: Policy) -> Shares:
    """Return the shares that each of some executors searches."""
    if not owners:
        return {}
    holders = dealing.holders(spec, owners)
    size_bytes = sum(each.size_bytes for each in dealing.pieces(spec))
    if policy.is_small_table(size_bytes) or not holders or (log and entries.buckets(spec) is None):
        # Always the same one, which has its index already.
        first = next((owner for owner, *_ in holders.values()), owners[0])
        return {first: None}
    shares: dict[ExecutorId, list[str]] = {}
    for name, (owner, *_) in holders.items():
        shares.setdefault(owner, []).append(name)
    return {owner: tuple(names) for owner, names in shares.items()}
