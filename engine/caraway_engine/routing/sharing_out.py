"""Divides the tables of a query into shares, one for each slot."""

from collections.abc import Collection, Mapping

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import dealing, pruning
from caraway_engine.sharing.pruning import Reads


def shares_of(
    session: Session, tables: Collection[TableName], filters: Reads, slots: tuple[str, ...]
) -> Mapping[TableName, tuple[Share, ...]]:
    """List the files of the tables once for all tasks, and divide those that are needed.

    Blocks while files are listed.

    Raises:
        NotDistributableError: the files of a table cannot be divided.
        QueryError: they cannot be listed.
    """
    found = {}
    for table in tables:
        files = session.pieces(table)
        if files is None:
            raise NotDistributableError(f"the files of dataset '{table}' cannot be divided")
        spec = session.snapshot.tables.get(table)
        divided = tuple(
            Share(table, pieces) for pieces in dealing.assign_pieces(spec, files, slots)
        )
        if pruning.is_cut(spec) and table in filters:
            # Prune after dividing, because the division must not depend on the query.
            divided = tuple(pruning.pruned(spec, filters[table], share) for share in divided)
        found[table] = divided
    return found
