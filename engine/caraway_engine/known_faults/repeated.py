"""Refuses random values that DataFusion 55 computes again for each use.

Those of a CTE are computed for each reference, those before BETWEEN for each of its bounds, and
those of `coalesce` to compare them with NULL and to return them.
"""

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.syntax import Tree

_COALESCING = frozenset({"coalesce", "ifnull", "nvl"})


def check(statement: Tree) -> None:
    """Refuse a statement that reads random values of a CTE or before BETWEEN more than once.

    Raises:
        InvalidQueryError: the statement does so.
    """
    for query in syntax.everything(statement):
        if syntax.kind(query) == "Between" and scopes.is_volatile(query["Between"]["expr"]):
            raise InvalidQueryError(
                "BETWEEN after random() or uuid() is not supported: the engine would compute the "
                "value twice; select it in a subquery, and compare the column of that"
            )
        name = syntax.function_name(query)
        if name in _COALESCING and scopes.is_volatile(syntax.arguments(query)[:-1]):
            raise InvalidQueryError(
                f"{name} of random() or uuid() is not supported before its last argument: the "
                "engine would compute the value twice; select it in a subquery, and call "
                f"{name} on the column of that"
            )
        if not syntax.is_query(query) or not query["with"]:
            continue
        by_chance: set[str] = set()
        ctes = query["with"]["cte_tables"]
        for number, cte in enumerate(ctes, start=1):
            if not scopes.is_volatile(cte["query"]) and by_chance.isdisjoint(
                scopes.read(cte["query"])
            ):
                continue
            name = syntax.spelled(cte["alias"]["name"])
            by_chance.add(name)
            # Before this, the name is that of a table, or of the CTE itself in a recursive one.
            after = [{**query, "with": None}, *ctes[number:]]
            count = list(scopes.read(after)).count(name)
            if count > 1:
                raise InvalidQueryError(
                    f"the CTE '{name}' calls random() or uuid() and is read {count} "
                    "times, and the engine would recompute it each time; read it once, or "
                    "derive the values from something stable, such as a hash of a key"
                )
