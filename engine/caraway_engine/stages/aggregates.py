"""Splits aggregates into two phases: partial results in each task, merged into the final result."""

from collections.abc import Sequence
from dataclasses import dataclass

from substrait.algebra_pb2 import AggregateFunction, AggregateRel, Expression, Rel
from substrait.type_pb2 import Type

from caraway_engine.searching import function_names
from caraway_engine.stages.functions import Functions, cast
from caraway_engine.stages.relations import project, reference

# The aggregate that merges the partial results of each function.
_MERGED_BY = {
    "sum": "sum",
    "count": "sum",
    "min": "min",
    "max": "max",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    function_names.TEXT_STATISTICS: function_names.STATISTICS_SUM,
}
_COUNT_PRECISION = 20


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """An aggregate in two phases: a partial one in each task, and the merge of its rows.

    Each task runs `partial`, and its rows merge by the first `groups` columns.
    `slots` has the column of each measure in the partial row, and whether it is an average. The
    count of an average is in the next column.
    """

    partial: Rel
    groups: int
    slots: tuple[tuple[int, bool], ...]


def decompose(rel: Rel, child: Rel, functions: Functions) -> TwoPhase | None:
    """Split an aggregate into two phases, or return None if a function cannot be split."""
    aggregate = rel.aggregate
    if len(aggregate.groupings) > 1 or aggregate.common.HasField("emit"):
        return None
    if not all(_decomposes(each.measure, functions) for each in aggregate.measures):
        return None
    partial = Rel()
    partial.CopyFrom(rel)
    partial.aggregate.input.CopyFrom(child)
    del partial.aggregate.measures[:]
    groups = len(aggregate.grouping_expressions)
    slots = []
    for each in aggregate.measures:
        is_average = functions.name(each.measure.function_reference) == "avg"
        slots.append((groups + len(partial.aggregate.measures), is_average))
        for name in ("sum", "count") if is_average else (None,):
            added = partial.aggregate.measures.add()
            added.CopyFrom(each)
            if name:
                added.measure.function_reference = functions.anchor(name)
    return TwoPhase(partial, groups, tuple(slots))


def merge(rel: Rel, cut: TwoPhase, source: Rel, functions: Functions, types: Sequence[Type]) -> Rel:
    """Merge the partial rows of `source` into the result of the whole aggregate.

    `types` are the column types of the whole aggregate, because a sum of sums is wider than a sum.
    """
    final = Rel()
    grouping = final.aggregate.groupings.add()
    for index in range(cut.groups):
        grouping.expression_references.append(index)
        final.aggregate.grouping_expressions.append(reference(index))
    final.aggregate.input.CopyFrom(source)
    columns: list[Expression] = [reference(index) for index in range(cut.groups)]
    for each, (slot, is_average) in zip(rel.aggregate.measures, cut.slots, strict=True):
        name = functions.name(each.measure.function_reference)
        first = _add(final.aggregate, "sum" if is_average else _MERGED_BY[name], slot, functions)
        value = reference(cut.groups + first)
        type_ = types[len(columns)]
        if is_average:
            count = _add(final.aggregate, "sum", slot + 1, functions)
            value = _quotient(value, reference(cut.groups + count), type_, functions)
        columns.append(cast(value, type_) if is_average or name == "sum" else value)
    return project(final, columns)


def _decomposes(function: AggregateFunction, functions: Functions) -> bool:
    name = functions.name(function.function_reference)
    distinct = AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
    if function.invocation == distinct or len(function.sorts):
        return False
    return name in _MERGED_BY or name == "avg"


def _add(aggregate: AggregateRel, name: str, slot: int, functions: Functions) -> int:
    measure = aggregate.measures.add().measure
    measure.function_reference = functions.anchor(name)
    measure.invocation = AggregateFunction.AGGREGATION_INVOCATION_ALL
    measure.arguments.add().value.CopyFrom(reference(slot))
    return len(aggregate.measures) - 1


def _quotient(
    total: Expression, count: Expression, type_: Type, functions: Functions
) -> Expression:
    """Divide as the engine's avg does: decimals get four more digits and are truncated."""
    divisor = Type()
    if type_.WhichOneof("kind") == "decimal":
        divisor.decimal.precision = _COUNT_PRECISION
        divisor.decimal.scale = 0
        divisor.decimal.nullability = Type.NULLABILITY_NULLABLE
        return functions.call("divide", total, cast(count, divisor))
    divisor.fp64.nullability = Type.NULLABILITY_NULLABLE
    return functions.call("divide", cast(total, divisor), cast(count, divisor))
