"""CTEs that give other rows each time: DataFusion 55 computes a CTE anew wherever it is read."""

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.syntax import Tree


def check(statement: Tree) -> None:
    """Refuse a statement that reads a CTE twice which hangs on chance.

    Raises:
        InvalidQueryError: it does.
    """
    for query in syntax.everything(statement):
        if not syntax.is_query(query) or not query["with"]:
            continue
        by_chance: set[str] = set()
        for cte in query["with"]["cte_tables"]:
            if scopes.is_volatile(cte["query"]) or by_chance & set(scopes.read(cte["query"])):
                by_chance.add(syntax.spelled(cte["alias"]["name"]))
        read = list(scopes.read(query))
        for name in sorted(by_chance):
            if read.count(name) > 1:
                raise InvalidQueryError(
                    f"the CTE '{name}' calls random() or uuid() and is read {read.count(name)} "
                    "times, and the engine would compute it anew each time; read it once, or "
                    "make the values of something that stays, such as a hash of a key"
                )
