"""Keeps columns whose names other columns have below them, where fields of structs are read.

DataFusion 55 reads fields of structs as early as it can, and looks up the other columns by name on
the way. If `-a AS a` is computed above a filter or a limit, it takes the column `a` of the table
instead, or fails. It also computes random values again for each field that is read.
"""

from typing import Any

from datafusion import LogicalPlan, SessionContext

from caraway_core.sqltext import builtin_functions
from caraway_engine.known_faults import names
from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.plan_nodes import PlanNode

SETTINGS = frozenset({"datafusion.optimizer.enable_leaf_expression_pushdown"})
_NOTHING = frozenset[str]()
_READS = "get_field"


def forbidden(context: SessionContext, plan: object, facts: PlanFacts) -> frozenset[str]:
    """Return the settings that must be off while a logical plan is optimized."""
    if _READS not in facts.functions:
        return _NOTHING
    if not facts.is_complete or not facts.functions.isdisjoint(builtin_functions.RANDOM):
        return SETTINGS
    is_shadowed = _look(context, plan_nodes.typed(getattr(plan, "_raw_plan", plan)))[1]
    return SETTINGS if is_shadowed else _NOTHING


def optimized(context: SessionContext, dataframe: Any) -> object:
    """Return the optimized plan, also where reading fields early is an error."""
    try:
        return dataframe.optimized_logical_plan()
    except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
        return names.without(context, dataframe, SETTINGS).optimized_logical_plan()


def _look(context: SessionContext, node: PlanNode) -> tuple[set[str], bool]:
    """Return the names of all columns of a plan and below, and whether one may be mistaken."""
    found, is_shadowed = set[str](), False
    for raw in node.plan.inputs():
        below, is_so = _look(context, plan_nodes.typed(raw))
        found |= below
        is_shadowed |= is_so
    match node.kind:
        case "Projection":
            is_shadowed |= any(_shadows(each, found) for each in node.variant.projections())
        case "Union":
            # A branch that is always empty leaves the names of the other one.
            is_shadowed |= any(map(_is_constant, plan_nodes.nodes(node.plan)))
    frame = context.create_dataframe_from_logical_plan(LogicalPlan(node.plan))
    return found | set(frame.schema().names), is_shadowed


def _shadows(item: Any, below: set[str]) -> bool:
    """Return whether an item of a SELECT has the name of another column below it."""
    if item.variant_name() != "Alias":
        return False
    name = item.to_variant().alias()
    inner = item.rex_call_operands()[0]
    while inner.variant_name() == "Alias":
        inner = inner.rex_call_operands()[0]
    is_same = inner.variant_name() == "Column" and inner.to_variant().name() == name
    return name in below and not is_same


def _is_constant(node: PlanNode) -> bool:
    if node.kind != "Filter":
        return False
    return all(part.kind != "Column" for part in plan_nodes.inside(node.variant.predicate()))
