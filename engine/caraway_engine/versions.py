"""The accelerated datasets of one catalog, each in the version that the catalog names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from datafusion.catalog import Table

from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Task
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine import renaming, sharing, stored
from caraway_engine.stored import Chunks, Version


class Versions:
    """Sees to it that what a statement or task reads of them is in memory."""

    def __init__(self, chunks: Chunks, partitions: int) -> None:
        self._chunks = chunks
        self._partitions = partitions
        self.by_name: dict[TableName, Version] = {}

    def __iter__(self) -> Iterator[Version]:
        return iter(self.by_name.values())

    def __contains__(self, table: TableName) -> bool:
        return table in self.by_name

    def add(self, specs: Mapping[TableName, TableSpec], known: Sequence[Version]) -> None:
        """Give each dataset its version: one of the known, or else a new one."""
        for name, spec in specs.items():
            if isinstance(spec, StoredTable):
                # Equal, not the same: one that came from another process is a new object.
                same = next((each for each in known if each.spec == spec), None)
                self.by_name[name] = same or Version(name, spec, self._partitions)

    def fill(self, tables: Iterable[TableName]) -> None:
        """Have the rows of whole tables in memory.

        Raises:
            ChunksAwayError: some are not there.
        """
        stored.check_present(self.by_name[table].fill(self._chunks) for table in tables)

    def narrowed(self, task: Task) -> tuple[Task, dict[str, Table]]:
        """Have a fragment read tables of its shares, which are returned by name.

        Raises:
            ChunksAwayError: some of their rows are not in memory.
            ExecutionError: the shares are not of these versions, or not read.
        """
        found = {
            share.table: self.by_name[share.table].share(
                tuple(piece.path for piece in share.pieces), self._chunks
            )
            for share in task.shares
            if share.table in self
        }
        if not found:
            return task, {}
        stored.check_present(found.values())
        names = {table: f"chunks of {table}" for table in found}
        renamed = renaming.renamed(task.plan, names)
        for table in names.keys() - renamed.read:
            raise sharing.unread(table)
        others = tuple(share for share in task.shares if share.table not in found)
        made = {names[table]: each for table, each in found.items() if isinstance(each, Table)}
        return replace(task, plan=renamed.fragment, shares=others), made
