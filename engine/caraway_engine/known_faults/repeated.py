"""Refuses volatile CTEs that are read twice, because DataFusion 55 recomputes them each time."""

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.syntax import Tree


def check(statement: Tree) -> None:
    """Refuse a statement that reads a CTE with random values more than once.

    Raises:
        InvalidQueryError: the statement does so.
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
                    "times, and the engine would recompute it each time; read it once, or "
                    "derive the values from something stable, such as a hash of a key"
                )
