"""What each slot of a query reads of the tables that are divided among them."""

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
    """List the files of the tables, once for all tasks, and deal out those that are needed.

    Blocks while files are listed.

    Raises:
        NotDistributableError: those of a table cannot be dealt out.
        QueryError: they cannot be listed.
    """
    found = {}
    for table in tables:
        files = session.pieces(table)
        if files is None:
            raise NotDistributableError(f"the files of dataset '{table}' cannot be shared out")
        spec = session.snapshot.tables.get(table)
        cut = tuple(Share(table, pieces) for pieces in dealing.dealt(spec, files, slots))
        if pruning.is_cut(spec) and table in filters:
            # After the dealing, which must not depend on what a query wants.
            cut = tuple(pruning.pruned(spec, filters[table], share) for share in cut)
        found[table] = cut
    return found
