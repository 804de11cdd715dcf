"""Rewrites comparisons and sorts of intervals, which DataFusion 55 gets wrong.

It compares months first, then days, then the rest. So a month is more than 40 days. The difference
of two times, which has neither months nor days, is less than a day.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import sort_keys, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.sort_keys import NameOf, WrappedSortKey
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
    return [
        *sides,
        *_sorted(scope),
        *(each for call in _extremes(scope) for each in syntax.arguments(call)),
    ]


def mend(scope: SelectScope, types: Types, name_of: NameOf) -> bool:
    """Compare and sort intervals in seconds; return whether there were any.

    Raises:
        InvalidQueryError: the statement computes the minimum or maximum of intervals.
    """
    types.types_of(scope, candidates(scope))
    for call in _extremes(scope):
        if any(_is_interval(scope, each) for each in syntax.arguments(call)):
            name = syntax.function_name(call)
            raise InvalidQueryError(
                f"{name} of INTERVAL is not supported: the engine would compare months first; use "
                f"{name}(date_part('epoch', x)), which compares seconds"
            )
    changes = [
        side
        for sides in _compared(scope)
        if any(_is_interval(scope, side) for side in sides)
        and all(_is_length(scope, side) for side in sides)
        for side in sides
    ]
    changes += [each for each in _sorted(scope) if _is_interval(scope, each)]
    is_sorted = _in_seconds(sort_keys.keys(scope, types, name_of))
    for old in changes:
        syntax.replace(old, syntax.filled(_SECONDS, a=dict(old)))
    return is_sorted or bool(changes)


def mend_sets(statement: Tree, types: Types) -> bool:
    """Sort the intervals of set operations in seconds; return whether there were any."""
    return _in_seconds(key for _, key in sort_keys.of_sets(statement, types))


def _in_seconds(keys: Iterable[WrappedSortKey]) -> bool:
    wrapped_sort_keys = [
        each for each in list(keys) if each.type_ and pa.types.is_interval(each.type_)
    ]
    changes = [each.wrap(_SECONDS) for each in wrapped_sort_keys]
    return any(changes)


def _is_interval(scope: SelectScope, expression: Tree) -> bool:
    type_ = scope.types.get(id(expression))
    return type_ is not None and bool(pa.types.is_interval(type_))


def _is_length(scope: SelectScope, expression: Tree) -> bool:
    type_ = scope.types.get(id(expression))
    return type_ is not None and bool(pa.types.is_interval(type_) or pa.types.is_duration(type_))


def _extremes(scope: SelectScope) -> list[Tree]:
    return [each for each in scope.expressions() if syntax.function_name(each) in _EXTREMES]


def _sorted(scope: SelectScope) -> Iterator[Tree]:
    """Yield the sort keys of windows and of aggregates."""
    outer = {id(each["expr"]) for each in scope.sort_keys()}
    for each in scope.expressions():
        if "with_fill" in each and "expr" in each and id(each["expr"]) not in outer:
            yield each["expr"]


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
