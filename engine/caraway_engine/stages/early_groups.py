"""Groups the many rows of a LEFT join before it, where an aggregate needs no others.

`SELECT c.id, count(o.id) FROM c LEFT JOIN o ON o.c = c.id GROUP BY c.id` counts the rows of each
`o.c` first, and joins and adds the counts. On a cluster, tasks group the rows of `o` in place, so
few of them are sent to other executors.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
from substrait.algebra_pb2 import AggregateRel, Expression, Rel

from caraway_engine.stages import aggregates, joins
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import (
    body,
    children,
    field_of,
    fields,
    join_type,
    kind,
    origins,
    project,
    reference,
    width,
    with_children,
)
from caraway_engine.stages.schemas import TypeSchemas

_NEVER_FAIL = frozenset({"bitwise_shift_right"})
"""Functions of arguments that fail for no value; sums of whole numbers are compared with this."""
MayGroup = Callable[[Rel, Rel], bool]
"""Says of the sides of a join whether rows of the right one should be grouped first."""


def group_before_joins(
    rel: Rel, functions: Functions, schemas: TypeSchemas, may_group: MayGroup
) -> Rel:
    """Return the relation with each aggregate of this kind in two: one below its join, one above.

    Each value of a group is computed from the same rows as before. Only columns are aggregated, and
    numbers as wider ones, so nothing fails for a row without a match.
    """
    inputs = [group_before_joins(each, functions, schemas, may_group) for each in children(rel)]
    rel = with_children(rel, inputs)
    if kind(rel) != "aggregate":
        return rel
    grouped = _grouped(rel, functions, schemas, may_group)
    return rel if grouped is None else grouped


def _grouped(
    rel: Rel, functions: Functions, schemas: TypeSchemas, may_group: MayGroup
) -> Rel | None:
    join, columns = _join_below(rel.aggregate.input)
    if kind(join) != "join" or join_type(join) != "LEFT" or body(join).common.HasField("emit"):
        return None
    left, right = children(join)
    inside = width(left)
    groups = [_column(each, columns) for each in rel.aggregate.grouping_expressions]
    if not groups or any(each is None or each >= inside for each in groups):
        return None
    keys = joins.keys(join, inside, functions)
    if not keys or joins.count_conditions(join, functions) != len(keys):
        return None
    if not may_group(left, right):
        return None
    schema = schemas.schema(functions.plan(right))
    side = _RightSide(right, schema, [_shifted(each, inside) for each in columns], functions)
    below = side.grouped(rel.aggregate, [key.columns[1] for key in keys])
    cut = below and aggregates.decompose(below, right, functions)
    if below is None or cut is None:
        return None
    joined = _joined(left, cut.partial, keys, functions)
    counts = {
        slot - cut.groups
        for each, (slot, _) in zip(below.aggregate.measures, cut.slots, strict=True)
        if functions.name(each.measure.function_reference) == "count"
    }
    values = [reference(each) for each in range(inside + cut.groups, width(joined))]
    counted = [
        functions.call("coalesce", value, _zero()) if number in counts else value
        for number, value in enumerate(values)
    ]
    source = project(joined, [*(reference(each) for each in groups if each is not None), *counted])
    moved = tuple((slot - cut.groups + len(groups), average) for slot, average in cut.slots)
    types = schemas.types(schemas.schema(functions.plan(rel)))
    return aggregates.merge(
        rel, replace(cut, groups=len(groups), slots=moved), source, functions, types
    )


def _join_below(rel: Rel) -> tuple[Rel, list[int | None]]:
    """Return the relation below projections, and its column for each of their columns."""
    columns: list[int | None] = list(range(width(rel)))
    while kind(rel) == "project":
        below = origins(rel)
        columns = [None if each is None else below[each] for each in columns]
        rel = rel.project.input
    return rel, columns


def _column(expression: Expression, columns: list[int | None]) -> int | None:
    column = field_of(expression)
    return None if column is None else columns[column]


def _shifted(column: int | None, by: int) -> int | None:
    """Return the column of the right side, or None if it is of the left one."""
    return None if column is None or column < by else column - by


class _RightSide:
    """The side whose rows are aggregated; `columns` has its column for each above the join."""

    def __init__(
        self, rel: Rel, schema: pa.Schema, columns: list[int | None], functions: Functions
    ) -> None:
        self._rel = rel
        self._schema = schema
        self._columns = columns
        self._functions = functions

    def grouped(self, above: AggregateRel, keys: list[int | None]) -> Rel | None:
        """Return the aggregate of this side by the keys of the join; None if it is not the same."""
        if len(set(keys)) < len(keys) or len(above.groupings) > 1 or above.common.HasField("emit"):
            return None
        below = Rel()
        below.aggregate.input.CopyFrom(self._rel)
        grouping = below.aggregate.groupings.add()
        for number, key in enumerate(keys):
            if key is None or not _groups_as_it_joins(self._schema.field(key).type):
                return None
            grouping.expression_references.append(number)
            below.aggregate.grouping_expressions.append(reference(key))
        for each in above.measures:
            values = [self._moved(argument.value) for argument in each.measure.arguments]
            if not values or each.HasField("filter"):
                return None
            added = below.aggregate.measures.add()
            added.CopyFrom(each)
            for argument, value in zip(added.measure.arguments, values, strict=True):
                if value is None:
                    return None
                argument.value.CopyFrom(value)
        return below

    def _moved(self, argument: Expression) -> Expression | None:
        """Return an argument over this side; None if it might fail, or needs other rows."""
        if not any(True for _ in fields(argument)) or not self._never_fails(argument):
            return None
        copy = Expression()
        copy.CopyFrom(argument)
        for each in fields(copy):
            column = self._columns[each.field]
            if column is None:
                return None
            each.field = column
        return copy

    def _never_fails(self, expression: Expression) -> bool:
        match expression.WhichOneof("rex_type"):
            case "selection":
                return field_of(expression) is not None
            case "literal":
                return True
            case "cast":
                return self._is_widened(expression.cast)
            case "scalar_function":
                call = expression.scalar_function
                return self._functions.name(call.function_reference) in _NEVER_FAIL and all(
                    self._never_fails(each.value) for each in call.arguments
                )
        return False

    def _is_widened(self, cast: Expression.Cast) -> bool:
        column = field_of(cast.input)
        place = None if column is None else self._columns[column]
        if place is None or cast.type.WhichOneof("kind") != "fp64":
            return False
        type_ = self._schema.field(place).type
        return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _groups_as_it_joins(type_: pa.DataType) -> bool:
    """Return whether values are in one group if, and only if, they join the same rows.

    That is not sure for zeros and NaNs, also in lists and structs.
    """
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))


def _joined(left: Rel, right: Rel, keys: tuple[joins.Key, ...], functions: Functions) -> Rel:
    new = Rel()
    new.join.left.CopyFrom(left)
    new.join.right.CopyFrom(right)
    new.join.type = new.join.JOIN_TYPE_LEFT
    pairs = [
        functions.call(key.equality, key.left, reference(width(left) + number))
        for number, key in enumerate(keys)
    ]
    new.join.expression.CopyFrom(joins.conjunction(pairs, functions))
    return new


def _zero() -> Expression:
    expression = Expression()
    expression.literal.i64 = 0
    return expression
