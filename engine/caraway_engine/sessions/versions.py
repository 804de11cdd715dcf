"""The accelerated datasets of a catalog, each at the version that the catalog names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from datafusion.catalog import Table

from caraway_core.changes import Logs
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Task
from caraway_core.tables import TableSpec
from caraway_core.work import SubstraitFragment
from caraway_engine import stored
from caraway_engine.join_orders import RowFacts
from caraway_engine.rows import entries
from caraway_engine.rows.held import Chunks
from caraway_engine.sharing import pruning, renaming, sharing
from caraway_engine.sharing.pruning import Reads
from caraway_engine.stored import MissingChunks, StoredShare, StoredVersion, VersionView

Views = Mapping[TableName, VersionView]
Shown = Mapping[TableName, VersionView | StoredShare]
"""The tables that statements see in place of versions without a log."""
PRUNED_BYTES = 32 * 1024 * 1024
"""Tables below this size are read in full: pruning them takes longer than reading them."""


@dataclass(frozen=True, slots=True)
class NarrowedTask:
    """A task whose fragment reads tables of its shares, and the views that these are of."""

    task: Task
    fragment: bytes
    tables: Mapping[str, Table]
    views: Views


class DatasetVersions:
    """Keeps the versions of accelerated datasets, and checks that their rows are in memory."""

    def __init__(self, chunks: Chunks, partitions: int) -> None:
        self._chunks = chunks
        self._partitions = partitions
        self.by_name: dict[TableName, StoredVersion] = {}

    def __iter__(self) -> Iterator[StoredVersion]:
        return iter(self.by_name.values())

    def __contains__(self, table: TableName) -> bool:
        return table in self.by_name

    def add(self, specs: Mapping[TableName, TableSpec], known: Sequence[StoredVersion]) -> None:
        """Assign a version to each accelerated dataset: an existing equal one, or a new one."""
        for name, spec in specs.items():
            if (version := spec.version) is not None:
                # Compare by value: a spec from another process is a new object.
                same = next((each for each in known if each.spec == version), None)
                self.by_name[name] = same or StoredVersion(name, version, self._partitions)

    def facts(self, table: TableName) -> RowFacts | None:
        """Return what is known of the rows of an accelerated dataset, or None."""
        return self.by_name[table].facts(self._chunks)

    def views(self, tables: Iterable[TableName], logs: Logs) -> Views:
        """Return a view at the end of its log for each of the tables that has a log."""
        if not logs:
            return {}
        versions = {table: self.by_name[table] for table in tables}
        found = {table: (each, logs.get(each.spec.key)) for table, each in versions.items()}
        return {table: each.at(log) for table, (each, log) in found.items() if log}

    def prunable(self, tables: Iterable[TableName]) -> frozenset[TableName]:
        """Return the tables that can be pruned by partition and are large enough to be worth it."""
        specs = ((table, self.by_name[table].spec) for table in tables)
        return frozenset(
            table
            for table, spec in specs
            if pruning.is_cut(spec) and sum(each.size_bytes for each in spec.chunks) >= PRUNED_BYTES
        )

    def pruned(self, tables: Iterable[TableName], filters: Reads, views: Views) -> Shown:
        """Return the tables that filters prune, each with only the partitions that are needed.

        Raises:
            ChunksAwayError: rows of these partitions are not in memory.
        """
        parts: dict[TableName, StoredShare | MissingChunks] = {}
        for table in tables:
            version = self.by_name[table]
            if table in views and entries.buckets(version.spec) is None:
                continue  # A change may belong to any partition.
            wanted = pruning.kept(version.spec, filters.get(table, ((),)), version.names)
            names = tuple(name for name in version.names if name in wanted)
            if len(names) < len(version.names):
                parts[table] = (views.get(table) or version.at(())).part(names, self._chunks)
        stored.check_present(each for each in parts.values() if isinstance(each, MissingChunks))
        return {table: each for table, each in parts.items() if isinstance(each, StoredShare)}

    def fill(self, tables: Iterable[TableName], views: Shown | None = None) -> None:
        """Check that whole tables are in memory, with their logs where there are views.

        Raises:
            ChunksAwayError: some rows are not in memory.
        """
        views = views or {}
        stored.check_present(
            (views.get(table) or self.by_name[table]).fill(self._chunks) for table in tables
        )

    def listed(self, table: TableName, views: Shown) -> Table:
        """Return the rows of a table that is in memory, for a statement that only lists them.

        Raises:
            ChunksAwayError: some rows are not in memory.
        """
        return (views.get(table) or self.by_name[table].at(())).listed(self._chunks)

    def narrowed(self, task: Task, fragment: SubstraitFragment) -> NarrowedTask:
        """Make a fragment read the task's shares, and whole tables at the end of their logs.

        Raises:
            ChunksAwayError: some of their rows are not in memory.
            ExecutionError: the shares are not of these versions, or are not read.
        """
        views = self.views(self.by_name, task.logs)
        shared = {
            share.table: (views.get(share.table) or self.by_name[share.table]).share(
                tuple(piece.name for piece in share.pieces), self._chunks
            )
            for share in task.shares
            if share.table in self
        }
        if not shared and not views:
            return NarrowedTask(task, fragment.plan, {}, {})
        stored.check_present(shared.values())
        names = {table: f"rows of {table}" for table in views.keys() - shared.keys()}
        names |= {table: f"chunks of {table}" for table in shared}
        renamed = renaming.renamed(fragment.plan, names)
        for table in shared.keys() - renamed.read:
            raise sharing.unread(table)
        read = {table: view for table, view in views.items() if table in renamed.read}
        whole = read.keys() - shared.keys()
        self.fill(whole, read)
        made = {names[table]: each for table, each in shared.items() if isinstance(each, Table)}
        made |= {names[table]: read[table].table for table in whole}
        others = tuple(share for share in task.shares if share.table not in shared)
        return NarrowedTask(replace(task, shares=others), renamed.fragment, made, read)
