"""Writes RIGHT joins as LEFT joins, sides swapped, if a join has more than equal columns in ON.

Filters above a RIGHT join of tables with equal column names need sort-merge joins, see `names`.
DataFusion 55 drops columns that the condition of a sort-merge join needs where nothing above reads
them: the statement panics or compares other columns. Above a LEFT join the filters do no harm. The
optimizer also makes RIGHT joins of FULL joins, which are then swapped as well.
"""

from contextlib import suppress

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_SWAPPED = {"Right": "Left", "RightOuter": "LeftOuter"}
_COLUMNS = ("Identifier", "CompoundIdentifier")


def mend(scope: SelectScope, types: Types, *, also_full: bool) -> bool:
    """Swap the sides of RIGHT joins; return whether there were any."""
    swapped = {**_SWAPPED, "FullOuter": "FullOuter"} if also_full else _SWAPPED
    found = [
        (from_, join)
        for from_ in joining.froms(scope.select["from"])
        for join in from_["joins"]
        if _kind(join) in swapped
    ]
    if not found or not _may_change_order(scope):
        return False
    with suppress(InvalidQueryError):  # Columns that are unknown cannot be written out.
        _write_out(scope, types)
        for from_, join in found:
            _swap(from_, join, swapped[_kind(join)])
        return True
    return False


def has_conditions(scope: SelectScope) -> bool:
    """Return whether a join has more than equal columns in ON."""
    return any(map(_has_more_than_columns, scope.joins()))


def _kind(join: Tree) -> str:
    operator = join["join_operator"]
    return syntax.kind(operator) if isinstance(operator, dict) else ""


def _has_more_than_columns(join: Tree) -> bool:
    return any(
        not _is_of_columns(each)
        for condition in scopes.on(join)
        for each in joining.conjuncts(condition)
    )


def _is_of_columns(condition: Tree) -> bool:
    """Return whether a condition compares two columns for equality."""
    if syntax.kind(condition) != "BinaryOp" or condition["BinaryOp"]["op"] != "Eq":
        return False
    sides = (syntax.unnested(condition["BinaryOp"][side]) for side in ("left", "right"))
    return all(syntax.kind(each) in _COLUMNS for each in sides)


def _may_change_order(scope: SelectScope) -> bool:
    """Return whether no part of FROM depends on the order of the relations."""
    for from_ in joining.froms(scope.select["from"]):
        for relation in (from_["relation"], *(join["relation"] for join in from_["joins"])):
            inner = syntax.body(relation)
            if syntax.kind(relation) not in ("Table", "Derived", "NestedJoin"):
                return False
            if inner.get("args") or inner.get("lateral"):
                return False
    joins = list(scope.joins())
    return all(
        _kind(join) == "" or not joining.is_by_name(syntax.body(join["join_operator"]))
        for join in joins
    )


def _write_out(scope: SelectScope, types: Types) -> None:
    """Write the columns of `*` in their order."""
    items: list[Tree] = []
    for item in scope.select["projection"]:
        if "Wildcard" in item:
            columns = joining.written_out(scope, types, item)
            items += [{"UnnamedExpr": column} for column in columns]
        else:
            items.append(item)
    scope.select["projection"] = items


def _swap(from_: Tree, join: Tree, operator: str) -> None:
    number = next(place for place, each in enumerate(from_["joins"]) if each is join)
    before, after = from_["joins"][:number], from_["joins"][number + 1 :]
    left = from_["relation"]
    if before:
        tree = {"relation": left, "joins": before}
        left = {"NestedJoin": {"table_with_joins": tree, "alias": None}}
    condition = syntax.body(join["join_operator"])
    swapped = {**join, "relation": left, "join_operator": {operator: condition}}
    from_["relation"], from_["joins"] = join["relation"], [swapped, *after]
