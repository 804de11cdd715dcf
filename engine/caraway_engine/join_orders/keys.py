"""Finds groupings whose groups a join looks up."""

from dataclasses import dataclass
from typing import Any

from caraway_engine.join_orders import expressions
from caraway_engine.join_orders.estimates import names_of
from caraway_engine.statements import plan_nodes

_SIMPLE = frozenset({"TableScan", "Filter", "Projection", "SubqueryAlias"})


@dataclass(frozen=True, slots=True)
class Grouping:
    """A grouping, the plan of its rows, and the column of these by which it groups."""

    plan: Any
    rows: Any
    expression: Any
    column: str


def grouping(raw: Any, name: str) -> Grouping | None:
    """Return the grouping whose key a column of a plan is, or None."""
    node = plan_nodes.typed(raw)
    if node.kind not in ("SubqueryAlias", "Projection", "Filter", "Aggregate"):
        return None
    place = names_of(node).index(name)
    (inner,) = raw.inputs()
    match node.kind:
        case "SubqueryAlias":
            return grouping(inner, names_of(plan_nodes.typed(inner))[place])
        case "Filter":
            return grouping(inner, name)
        case "Projection":
            expression = node.variant.projections()[place]
            if expression.variant_name() == "Alias":
                (expression,) = expression.rex_call_operands()
            source = expressions.column(expression)
            return None if source is None else grouping(inner, source)
    groups = node.variant.group_by_exprs()
    if place >= len(groups) or any(each.variant_name() == "GroupingSet" for each in groups):
        return None
    source = expressions.column(groups[place])
    return None if source is None else Grouping(raw, inner, groups[place], source)


def is_simple(raw: Any) -> bool:
    """Return whether a plan only reads, filters and computes, so that it may run twice."""
    return plan_nodes.typed(raw).kind in _SIMPLE and all(map(is_simple, raw.inputs()))
