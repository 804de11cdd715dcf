"""Moves filters and projections out of the reads of a plan, where DataFusion puts them."""

from collections.abc import Sequence
from functools import reduce

from substrait.algebra_pb2 import Expression, Rel

from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import (
    body,
    children,
    field_of,
    fields,
    kind,
    origins,
    project,
    reference,
    width,
    with_children,
)


def unfolded(rel: Rel) -> Rel:
    """Turn the filters and projections inside reads into relations."""
    if kind(rel) != "read":
        return _lowered(with_children(rel, [unfolded(each) for each in children(rel)]))
    made = Rel()
    made.CopyFrom(rel)
    for name in ("filter", "best_effort_filter", "projection"):
        made.read.ClearField(name)
    if rel.read.HasField("projection"):
        wanted = [int(item.field) for item in rel.read.projection.select.struct_items]
    else:
        wanted = list(range(width(made)))
    if not rel.read.HasField("filter"):
        # Rows without columns are counted by the engine, over one column.
        return _projected(made if wanted else _projected(made, [0]), wanted)
    condition = Expression()
    condition.CopyFrom(rel.read.filter)
    needed = sorted({*wanted, *(int(each.field) for each in fields(condition))})
    places = {each: place for place, each in enumerate(needed)}
    for each in fields(condition):
        each.field = places[each.field]
    made = filtered(_projected(made, needed), [condition])
    return _projected(made, [places[each] for each in wanted])


def _lowered(rel: Rel) -> Rel:
    """Move a filter below a projection that only selects columns, to join other filters.

    Below a projection that computes a window, it would remove rows that the window counts.
    """
    if kind(rel) != "filter" or kind(rel.filter.input) != "project":
        return rel
    places = origins(rel.filter.input)
    is_choice = all(field_of(each) is not None for each in rel.filter.input.project.expressions)
    if body(rel).common.HasField("emit") or not is_choice:
        return rel
    made = Rel()
    made.CopyFrom(rel)
    made.filter.input.CopyFrom(rel.filter.input.project.input)
    for each in fields(made.filter.condition):
        each.field = places[each.field]
    return with_children(rel.filter.input, [_lowered(made)])


def _projected(rel: Rel, wanted: Sequence[int]) -> Rel:
    if list(wanted) == list(range(width(rel))):
        return rel
    return project(rel, [reference(each) for each in wanted])


def filtered(rel: Rel, conditions: Sequence[Expression], functions: Functions | None = None) -> Rel:
    """Keep the rows that meet all conditions. Several conditions need the plan's functions."""
    if not conditions:
        return rel
    made = Rel()
    made.filter.input.CopyFrom(rel)
    condition = conditions[0]
    if functions is not None:
        condition = reduce(lambda left, right: functions.call("and", left, right), conditions)
    made.filter.condition.CopyFrom(condition)
    return made
