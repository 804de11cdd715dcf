"""Caches facts about a catalog, such as table sizes and owners, as long as its session lives."""

from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from caraway_core.ids import ExecutorId, TableName
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.routing.decisions import LookedUp
from caraway_engine.routing.protocol import Workers
from caraway_engine.rows import entries
from caraway_engine.sessions import distribution, lookups
from caraway_engine.sessions.lookups import PointLookup
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import dealing
from caraway_engine.stages import Cluster, TableFacts

_Holders = tuple[tuple[ExecutorId, ...], Mapping[str, tuple[ExecutorId, ...]]]
"""The ready executors, and which of them have each piece."""
_Sized = tuple[frozenset[TableName], Mapping[TableName, TableFacts]]
"""The tables that are never divided, and the facts of all tables."""


class CatalogFacts:
    """Caches the sizes of tables and the owners of their pieces for each session."""

    def __init__(self) -> None:
        self._sized: WeakKeyDictionary[Session, _Sized] = WeakKeyDictionary()
        self._placed: WeakKeyDictionary[Session, dict[TableName, _Holders]] = WeakKeyDictionary()

    def cluster(self, session: Session, logged: Collection[str], workers: Workers) -> Cluster:
        """Return the cluster facts for the stage planner; `logged` has the versions with a log."""
        whole = session.snapshot.undivided | _unparted(session.snapshot.tables, logged)
        known = self._sized.get(session)
        if known is None or known[0] != whole:
            known = whole, distribution.facts(session.snapshot.tables, whole)
            self._sized[session] = known
        slots = max(1, len(workers.executors))
        return Cluster(slots, workers.memory_bytes, known[1], workers.policy)

    def looked_up(self, session: Session, lookup: PointLookup, workers: Workers) -> LookedUp | None:
        """Return the executor that has all rows of a lookup, or None if no single one has."""
        spec = session.snapshot.tables[lookup.table].version
        assert spec is not None
        if not workers.executors:
            return None
        if workers.policy.is_small_table(sum(each.size_bytes for each in spec.chunks)):
            return LookedUp(lookup.table, None)
        names = lookups.pieces(session.versions.by_name[lookup.table], lookup)
        if len(names) > len(lookup.keys):
            return None  # Rows may be anywhere, and one executor cannot hold all of them.
        holders = self._holders(session, lookup.table, spec, workers.executors)
        owners = {holders[name][0] for name in names}
        return LookedUp(lookup.table, owners.pop()) if len(owners) == 1 else None

    def _holders(
        self,
        session: Session,
        table: TableName,
        spec: StoredTable,
        executors: tuple[ExecutorId, ...],
    ) -> Mapping[str, tuple[ExecutorId, ...]]:
        holders = self._placed.setdefault(session, {})
        placed = holders.get(table)
        if placed is None or placed[0] != executors:
            placed = holders[table] = executors, dealing.holders(spec, executors)
        return placed[1]


def _unparted(
    tables: Mapping[TableName, TableSpec], logged: Collection[str]
) -> frozenset[TableName]:
    """Return the tables whose changes cannot be assigned to the executors' partitions."""
    if not logged:
        return frozenset()
    return frozenset(
        name
        for name, spec in tables.items()
        if (version := spec.version) is not None
        and version.key in logged
        and entries.buckets(version) is None
    )
