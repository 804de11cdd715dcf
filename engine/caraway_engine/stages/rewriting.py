"""Rewrites a plan before exchanges are planned.

The engine's optimizer leaves a semi join above the joins of its left side. On one machine that
costs little. On a cluster, rows that it would drop are sent to other executors first. So the semi
join is moved down towards the rows that it filters.

The engine misreads one kind of join condition in Substrait. It takes an equality of two columns as
one column of each side. So an equality within one side is expressed differently.
"""

from collections.abc import Sequence

from substrait.algebra_pb2 import Expression, Rel

from caraway_engine.stages import joins
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import (
    body,
    children,
    has_window,
    join_type,
    kind,
    origins,
    reference,
    walk,
    width,
    with_children,
)

_OPPOSITES = {"equal": "not_equal", "is_not_distinct_from": "is_distinct_from"}


def lower_semi_joins(rel: Rel, functions: Functions) -> Rel:
    """Push each semi join on equal columns as far down its left side as possible."""
    rel = with_children(rel, [lower_semi_joins(each, functions) for each in children(rel)])
    if kind(rel) != "join" or join_type(rel) != "LEFT_SEMI" or rel.join.common.HasField("emit"):
        return rel
    left, right = children(rel)
    if kind(left) == "read" or not _is_only_keys(rel, width(left), functions):
        return rel
    keys = joins.keys(rel, width(left), functions)
    columns = [key.columns[0] for key in keys]
    if any(column is None for column in columns):
        return rel
    lowered = _lowered(left, [column for column in columns if column is not None], right, keys,
                       functions)  # fmt: skip
    return rel if lowered is None else lowered


def reword_own_equalities(rel: Rel, functions: Functions) -> Rel:
    """Rewrite equalities between columns of the same side in join conditions."""
    copy = Rel()
    copy.CopyFrom(rel)
    for each in walk(copy):
        if kind(each) == "join" and each.join.HasField("expression"):
            inside = width(each.join.left)
            conditions = list(joins.conjuncts(each.join.expression, functions))
            if any(joins.is_own_equality(one, inside, functions) for one in conditions):
                reworded = [_reworded(one, inside, functions) for one in conditions]
                each.join.expression.CopyFrom(joins.conjunction(reworded, functions))
    return copy


def _reworded(condition: Expression, left_width: int, functions: Functions) -> Expression:
    if not joins.is_own_equality(condition, left_width, functions):
        return condition
    call = condition.scalar_function
    opposite = _OPPOSITES[functions.name(call.function_reference)]
    sides = [argument.value for argument in call.arguments]
    return functions.call("not", functions.call(opposite, *sides))


def _is_only_keys(rel: Rel, left_width: int, functions: Functions) -> bool:
    return joins.count_conditions(rel, functions) == len(joins.keys(rel, left_width, functions))


def _lowered(
    rel: Rel, columns: Sequence[int], right: Rel, keys: Sequence[joins.Key], functions: Functions
) -> Rel | None:
    """Return the relation with the semi join inside it, or None if there is no join to pass."""
    if kind(rel) in ("project", "filter"):
        if kind(rel) == "project" and has_window(rel):
            return None
        below = [origins(rel)[column] for column in columns]
        if any(column is None or column >= width(children(rel)[0]) for column in below):
            return None
        inside = _lowered(children(rel)[0], [each for each in below if each is not None], right,
                          keys, functions)  # fmt: skip
        return None if inside is None else with_children(rel, [inside])
    if kind(rel) != "join" or join_type(rel) != "INNER" or body(rel).common.HasField("emit"):
        return None
    left, other = children(rel)
    boundary = width(left)
    if all(column < boundary for column in columns):
        return with_children(rel, [_semi(left, columns, right, keys, functions), other])
    if all(column >= boundary for column in columns):
        moved = [column - boundary for column in columns]
        return with_children(rel, [left, _semi(other, moved, right, keys, functions)])
    return None


def _semi(
    left: Rel, columns: Sequence[int], right: Rel, keys: Sequence[joins.Key], functions: Functions
) -> Rel:
    deeper = _lowered(left, columns, right, keys, functions)
    if deeper is not None:
        return deeper
    new = Rel()
    new.join.left.CopyFrom(left)
    new.join.right.CopyFrom(right)
    new.join.type = new.join.JOIN_TYPE_LEFT_SEMI
    pairs = [
        functions.call(key.equality, reference(column), joins.moved(key.right, width(left)))
        for column, key in zip(columns, keys, strict=True)
    ]
    new.join.expression.CopyFrom(joins.conjunction(pairs, functions))
    return new
