"""Keeps the rows after an OFFSET whole, which DataFusion 55 finds in other orders, and loses.

It moves a sort that is above an OFFSET with a LIMIT below it, and then takes too few rows. Sorts
are those of ORDER BY, of windows and of aggregates. It does not move them through a condition. It
also leaves out the order of an OFFSET without LIMIT in a subquery.
"""

from collections.abc import Iterator

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree

_ALL = 2**62
_KEPT = "SELECT * FROM (SELECT 1) AS after_offset WHERE random() >= 0"


def mend(statement: Tree, *, is_view: bool) -> bool:
    """Rewrite the subqueries with an OFFSET; return whether there were any."""
    found = [each for each in _subqueries(statement, is_view=is_view) if skips(each)]
    sorts = _sorts(statement)
    is_changed = False
    for query in found:
        if query["order_by"] and not _has_limit(query):
            _set_limit(query)
            is_changed = True
        if _has_limit(query) and (is_view or _sorts(query) < sorts):
            _put_condition(query)
            is_changed = True
    return is_changed


def _subqueries(statement: Tree, *, is_view: bool) -> Iterator[Tree]:
    """Yield the queries of FROM, WITH and set operations."""
    if is_view and "Query" in statement:
        yield statement["Query"]
    for each in list(syntax.everything(statement)):
        if "Derived" in each:
            yield each["Derived"]["subquery"]
        elif "cte_tables" in each:
            yield from (table["query"] for table in each["cte_tables"])
        elif "SetOperation" in each:
            sides = (each["SetOperation"][side] for side in ("left", "right"))
            yield from (side["Query"] for side in sides if "Query" in side)


def skips(query: Tree) -> bool:
    """Return whether a query skips its first rows."""
    limit = query["limit_clause"]
    return bool(limit) and bool(syntax.body(limit).get("offset", True))


def _has_limit(query: Tree) -> bool:
    return bool(query["fetch"]) or bool(syntax.body(query["limit_clause"]).get("limit"))


def _sorts(tree: Tree) -> int:
    """Return how many parts of a tree sort rows."""
    return sum(bool(each.get("order_by")) or "OrderBy" in each for each in syntax.everything(tree))


def _set_limit(query: Tree) -> None:
    (limited,) = syntax.parse(f"SELECT 1 LIMIT {_ALL}")
    limit = limited["Query"]["limit_clause"]
    syntax.body(query["limit_clause"])["limit"] = syntax.body(limit)["limit"]


def _put_condition(query: Tree) -> None:
    """Make the query one that selects from itself."""
    (kept,) = syntax.parse(_KEPT)
    derived = kept["Query"]["body"]["Select"]["from"][0]["relation"]["Derived"]
    derived["subquery"] = dict(query)
    syntax.replace(query, kept["Query"])
