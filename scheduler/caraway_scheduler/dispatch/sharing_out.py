"""What each slot of a query reads of the tables that are divided among them."""

from collections.abc import Collection, Mapping, Sequence

from caraway_core.errors import NotDistributableError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.partitions import matching
from caraway_core.protocols.fleet import Piece, Share
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine import pruning, shares, stored
from caraway_engine.pruning import Reads
from caraway_engine.sessions import Session
from caraway_engine.shares import ListedFile


def shares_of(
    session: Session, tables: Collection[TableName], filters: Reads, slots: tuple[str, ...]
) -> Mapping[TableName, tuple[Share, ...]]:
    """List the files of the tables, once for all tasks, and deal out those that are needed.

    Raises:
        NotDistributableError: those of a table cannot be dealt out.
    """
    found = {}
    for table in tables:
        files = session.pieces(table)
        if files is None:
            raise NotDistributableError(f"the files of dataset '{table}' cannot be shared out")
        spec = session.snapshot.tables.get(table)
        cut = tuple(Share(table, pieces) for pieces in dealt(spec, files, slots))
        if pruning.is_cut(spec) and table in filters:
            # After the dealing, which must not depend on what a query wants.
            cut = tuple(pruning.pruned(spec, filters[table], share) for share in cut)
        found[table] = cut
    return found


def dealt(
    spec: TableSpec | None, files: tuple[ListedFile, ...], owners: tuple[str, ...]
) -> tuple[tuple[Piece, ...], ...]:
    """Deal what a table is read from to its owners, all of it."""
    return shares.deal(files, owners, _buckets(spec, files))


def described(session: Session, filters: Reads, table: TableName) -> str:
    """Say in words how many partitions of a table are read, if it has some."""
    spec = session.snapshot.tables.get(table)
    if not pruning.is_cut(spec):
        return ""
    names = [each.path for each in stored.pieces(spec)]
    wanted = pruning.kept(spec, filters[table], names) if table in filters else names
    return f": {len(wanted)} of {len(names)} partitions"


def holders(
    spec: StoredTable, owners: Sequence[ExecutorId], replicas: int = 1
) -> Mapping[str, tuple[ExecutorId, ...]]:
    """Say which executors have each partition of a dataset: who is asked first comes first."""
    pieces = stored.pieces(spec)
    names = tuple(map(str, owners))
    if not names:
        return {each.path: () for each in pieces}
    count = _buckets(spec, pieces)
    if count is not None:
        ranks = shares.ranked(count, names, replicas)
        return {
            each.path: tuple(owners[number] for number in ranks[bucket])
            for bucket, each in enumerate(pieces)
        }
    cut = shares.place(pieces, names)
    return {
        piece.path: (owner,) for owner, share in zip(owners, cut, strict=True) for piece in share
    }


def _buckets(spec: TableSpec | None, files: Sequence[ListedFile]) -> int | None:
    """Count the buckets of a table that is dealt out by them alone."""
    if not isinstance(spec, StoredTable) or matching.colocation(spec.cut, spec.schema) is None:
        return None
    return len(files)
