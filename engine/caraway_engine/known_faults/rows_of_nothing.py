"""Keeps filters above aggregates that have a row even if they aggregate none.

DataFusion 55 moves a filter that names no column below an aggregate, because it names no other
column than those of GROUP BY. Without a GROUP BY, and with grouping sets, the aggregate then has a
row of nothing, as in `SELECT * FROM (SELECT 'a' AS t, count(*) FROM u) q WHERE t = 'b'`. Such a
filter comes from a constant in the SELECT, from a subquery, and from the ON of an outer join. It
stays above a LIMIT. So does a filter on a group by a random value, which the engine computes again
below the aggregate.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from caraway_engine.known_faults import chance, joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_AGGREGATES = re.compile(rf"\b(?:{'|'.join(sorted(scopes.AGGREGATES))})\s*\(", re.IGNORECASE)
_GROUP = re.compile(r"\bgroup\b", re.IGNORECASE)
_SELECT = re.compile(r"\bselect\b", re.IGNORECASE)
_ONE, _ALL = 1, 2**63 - 1
_WITH_COLUMN = "CASE WHEN count(*) < 0 THEN NULL ELSE __a END"


@dataclass(frozen=True, slots=True)
class _Side:
    """A side of a set operation, which is the body of a query."""

    tree: Tree
    body: Tree


def may_apply(words: str, *, is_view: bool) -> bool:
    """Return whether the text of a statement, without its comments, may have such filters."""
    if chance.may_apply(words.lower()) and _GROUP.search(words):
        return True
    selects = len(_SELECT.findall(words))
    return (selects > 1 or (is_view and selects > 0)) and bool(_AGGREGATES.search(words))


def mend(statement: Tree, types: Types, *, is_view: bool) -> bool:
    """Limit such aggregates to all of their rows; return whether there were any."""
    is_changed = False
    sides = _sides_by_query(statement)
    for scope in list(scopes.scopes(statement)):
        if (rows := _rows_of_nothing(scope)) is None:
            continue
        is_changed |= _mend_having(scope)
        if (scope.is_top and not is_view) or _is_correlated(scope, types):
            continue
        is_changed |= _limit(scope, types, rows, sides)
    return is_changed


def _rows_of_nothing(scope: SelectScope) -> int | None:
    """Return how many rows a SELECT may have, or None if it has none where FROM has none."""
    if scopes.grouping_sets(scope) or _has_random_groups(scope):
        return _ALL
    parts = [scope.select["projection"], scope.select["having"]]
    return _ONE if scopes.has_aggregate(parts) and not scopes.is_grouped(scope) else None


def _has_random_groups(scope: SelectScope) -> bool:
    # A name or a position in GROUP BY may be an item of the SELECT.
    parts = [scope.select[key] for key in ("projection", "group_by")]
    return scopes.is_grouped(scope) and scopes.is_volatile(parts)


def _mend_having(scope: SelectScope) -> bool:
    are_random = _has_random_groups(scope)
    terms = [
        each
        for each in joining.conjuncts(scope.select["having"])
        if (are_random or scopes.has_subquery(each)) and not scopes.has_aggregate(each)
    ]
    for each in terms:
        syntax.replace(each, syntax.filled(_WITH_COLUMN, a=dict(each)))
    return bool(terms)


def _is_correlated(scope: SelectScope, types: Types) -> bool:
    query = {**scope.query, "body": {"Select": scope.select}, "order_by": None}
    return scope.parent is not None and not types.can_stand_alone(query, scope.parent)


def _limit(scope: SelectScope, types: Types, rows: int, sides: Mapping[int, _Side]) -> bool:
    query, side = scope.query, sides.get(id(scope.query))
    if not scope.is_alone():
        body = scope.query["body"]
        query = syntax.query({"Select": scope.select})
        side = next(
            (_Side(each, body) for each in _sides(body) if each.get("Select") is scope.select), None
        )
        if side is None:
            return False
    elif query["limit_clause"] or query["fetch"]:
        return False
    if side is not None:
        named = _named_as(_leftmost(side.body), scope, types)
        if named is None:
            return False
        derived = next(each for each in syntax.everything(named) if "Derived" in each)
        derived["Derived"]["subquery"] = query
        syntax.replace(side.tree, named)
    (limited,) = syntax.parse(f"SELECT 1 LIMIT {rows}")
    query["limit_clause"] = limited["Query"]["limit_clause"]
    return True


def _sides_by_query(statement: Tree) -> Mapping[int, _Side]:
    """Return the sides of set operations that are in parentheses, by the identity of the query."""
    bodies = [each["body"] for each in syntax.everything(statement) if syntax.is_query(each)]
    return {
        id(side["Query"]): _Side(side, body)
        for body in bodies
        for side in _sides(body)
        if "Query" in side
    }


def _sides(tree: Tree) -> Iterator[Tree]:
    """Yield the sides of a set operation, and those of operations without parentheses in it."""
    for side in ("left", "right") if "SetOperation" in tree else ():
        inner = tree["SetOperation"][side]
        yield inner
        yield from _sides(inner)


def _leftmost(tree: Tree) -> Tree:
    while "SetOperation" in tree:
        tree = tree["SetOperation"]["left"]
    return tree


def _named_as(first: Tree, scope: SelectScope, types: Types) -> Tree | None:
    """Return a SELECT of a subquery with the columns of another one; None if they are unknown.

    The engine takes the names of a side with LIMIT for those of the set operation.
    """
    schema = types.schema(syntax.query(first), scope.with_)
    if schema is None:
        return None
    columns = ", ".join(f"c{number}" for number in range(len(schema.names)))
    (statement,) = syntax.parse(f"SELECT * FROM (SELECT 1) AS __rows({columns})")
    derived = next(each for each in syntax.everything(statement) if "Derived" in each)
    for column, name in zip(derived["Derived"]["alias"]["columns"], schema.names, strict=True):
        column["name"] = syntax.identifier(name)
    return statement["Query"]["body"]
