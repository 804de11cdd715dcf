"""Removes sort keys that occur twice in an aggregate or DISTINCT ON, where DataFusion 55 fails.

A key that occurred before decides nothing. The engine counts it in one place and not in another.
"""

from collections.abc import Iterator, Sequence

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree


def mend(scope: SelectScope) -> bool:
    """Remove repeated sort keys of a SELECT; return whether there were any."""
    is_changed = False
    for keys in _sorts(scope):
        is_changed |= _keep_first(keys, [key["expr"] for key in keys])
    if isinstance(scope.select["distinct"], dict):
        values = scope.select["distinct"]["On"]
        is_changed |= _keep_first(values, values)
        if (order := scope.query["order_by"]) and "Expressions" in order["kind"]:
            keys = order["kind"]["Expressions"]
            is_changed |= _keep_first(keys, [_meant(scope, key["expr"]) for key in keys])
    return is_changed


def _sorts(scope: SelectScope) -> Iterator[list[Tree]]:
    """Yield the keys by which aggregates sort their rows."""
    for each in scope.expressions():
        if syntax.kind(each) != "Function" or syntax.is_windowed(each):
            continue
        call = each["Function"]
        if syntax.kind(call["args"]) == "List":
            for clause in call["args"]["List"]["clauses"]:
                if isinstance(clause, dict) and "OrderBy" in clause:
                    yield clause["OrderBy"]
        yield call["within_group"]


def _keep_first(keys: list[Tree], values: Sequence[Tree]) -> bool:
    kept: list[Tree] = []
    places: list[int] = []
    for place, value in enumerate(values):
        if not any(is_same(value, each) for each in kept):
            kept.append(value)
            places.append(place)
    if len(kept) == len(values):
        return False
    keys[:] = [keys[place] for place in places]
    return True


def _meant(scope: SelectScope, key: Tree) -> Tree:
    """Return what a key of ORDER BY stands for, which may be an item of the SELECT."""
    items = scope.select["projection"]
    position = syntax.position(key)
    if position is not None and 1 <= position <= len(items):
        item = items[position - 1]
        return item.get("UnnamedExpr") or item.get("ExprWithAlias", {}).get("expr") or key
    if syntax.kind(key) == "Identifier":
        return scopes.aliases(items).get(syntax.spelled(key["Identifier"]), key)
    return key


def is_same(left: Tree, right: Tree) -> bool:
    """Return whether two expressions are the same, as far as their text shows.

    A name without its table is the column with its table: the other would be ambiguous.
    """
    left, right = syntax.unnested(left), syntax.unnested(right)
    names, others = _name(left), _name(right)
    if names and others:
        shortest = min(len(names), len(others))
        return names[-shortest:] == others[-shortest:]
    return _is_equal(left, right)


def _name(tree: Tree) -> list[str]:
    match syntax.kind(tree):
        case "Identifier":
            return [syntax.spelled(tree["Identifier"])]
        case "CompoundIdentifier":
            return [syntax.spelled(each) for each in tree["CompoundIdentifier"]]
    return []


def _is_equal(left: Tree, right: Tree) -> bool:
    """Compare trees without the places of their text."""
    if isinstance(left, dict) and isinstance(right, dict):
        if _name(left) or _name(right):
            return is_same(left, right) if _name(left) and _name(right) else False
        keys = left.keys() - {"span"}
        return keys == right.keys() - {"span"} and all(
            _is_equal(left[key], right[key]) for key in keys
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_is_equal, left, right))
    return bool(left == right)
