"""Rewrites comparisons and sorts of intervals, which DataFusion 55 gets wrong.

It compares months first, then days, then the rest. So a month is more than 40 days. The difference
of two times, which has neither months nor days, is less than a day.
"""

from collections.abc import Iterator

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_COMPARISONS = frozenset({"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq", "Spaceship"})
_DISTINCT = ("IsDistinctFrom", "IsNotDistinctFrom")
_EXTREMES = frozenset({"min", "max", "greatest", "least"})
# A day has 24 hours and a month 30 days, as in other databases. The cast keeps fractions of a
# second.
_SECONDS = "date_part('epoch', CAST(__a AS INTERVAL))"


def candidates(scope: SelectScope) -> list[Tree]:
    """Return the expressions whose types decide whether intervals are compared or sorted."""
    sides = [side for sides in _compared(scope) for side in sides]
    keys = [value for _, value in _sorted(scope)]
    return [*sides, *keys, *(each for call in _extremes(scope) for each in syntax.arguments(call))]


def mend(scope: SelectScope, types: Types) -> bool:
    """Compare and sort intervals in seconds; return whether there were any.

    Raises:
        InvalidQueryError: the statement computes the minimum or maximum of intervals.
    """
    types.of(scope, candidates(scope))
    for call in _extremes(scope):
        if any(_is_interval(scope, each) for each in syntax.arguments(call)):
            name = syntax.function_name(call)
            raise InvalidQueryError(
                f"{name} of INTERVAL is not supported: the engine would compare months first; use "
                f"{name}(date_part('epoch', x)), which compares seconds"
            )
    changes = [
        (side, side)
        for sides in _compared(scope)
        if any(_is_interval(scope, side) for side in sides)
        and all(_is_length(scope, side) for side in sides)
        for side in sides
    ]
    changes += [(key, value) for key, value in _sorted(scope) if _is_interval(scope, value)]
    for old, value in changes:
        syntax.replace(old, syntax.filled(_SECONDS, a=syntax.copied(value)))
    return bool(changes)


def _is_interval(scope: SelectScope, expression: Tree) -> bool:
    type_ = scope.types.get(id(expression))
    return type_ is not None and bool(pa.types.is_interval(type_))


def _is_length(scope: SelectScope, expression: Tree) -> bool:
    type_ = scope.types.get(id(expression))
    return type_ is not None and bool(pa.types.is_interval(type_) or pa.types.is_duration(type_))


def _extremes(scope: SelectScope) -> list[Tree]:
    return [each for each in scope.expressions() if syntax.function_name(each) in _EXTREMES]


def _sorted(scope: SelectScope) -> Iterator[tuple[Tree, Tree]]:
    """Yield the sort keys of the query, of windows and of aggregates, with resolved values."""
    outer = [each["expr"] for each in scope.sort_keys()]
    for key in outer:
        yield key, scopes.resolved(key, scope.select["projection"])
    for each in scope.expressions():
        is_key = "with_fill" in each and "expr" in each
        if is_key and not any(each["expr"] is key for key in outer):
            yield each["expr"], each["expr"]


def _compared(scope: SelectScope) -> Iterator[list[Tree]]:
    for each in scope.expressions():
        if sides := _sides(each):
            yield sides


def _sides(tree: Tree) -> list[Tree]:
    kind = syntax.kind(tree)
    found = syntax.body(tree) if kind else {}
    if kind == "BinaryOp" and found["op"] in _COMPARISONS:
        return [found["left"], found["right"]]
    if kind in _DISTINCT:
        return list(found)
    if kind == "Between":
        return [found["expr"], found["low"], found["high"]]
    return [found["expr"], *found["list"]] if kind == "InList" else []
