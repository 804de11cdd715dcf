"""An optimizer that makes joins of subqueries and leaves everything else in a plan as it is."""

from functools import cache
from typing import Any

from datafusion import LogicalPlan, SessionConfig, SessionContext

_RULES = frozenset(
    {"rewrite_set_comparison", "decorrelate_predicate_subquery", "scalar_subquery_to_join",
     "decorrelate_lateral_join", "replace_distinct_aggregate"}
)  # fmt: skip
_AFTER = "logical_plan after "


def frame(raw: Any, simplifies: bool = False) -> Any:
    """Make a query of a plan that is to be decorrelated."""
    return decorrelating(simplifies).create_dataframe_from_logical_plan(LogicalPlan(raw))


@cache
def one_row(simplifies: bool) -> Any:
    """Make the query of one row, to which a subquery can be added."""
    return decorrelating(simplifies).sql("SELECT 1")


@cache
def decorrelating(simplifies: bool = False) -> SessionContext:
    """Make the context that decorrelates and does nothing else. Plans bring their tables along."""
    config = (
        SessionConfig()
        .set("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", "false")
        .set("datafusion.optimizer.max_passes", "1")
    )
    context = SessionContext(config)
    kept = _RULES | {"simplify_expressions"} if simplifies else _RULES
    for step in context.sql("EXPLAIN VERBOSE SELECT 1").to_pydict()["plan_type"]:
        rule = step.removeprefix(_AFTER)
        if rule != step and rule not in kept:
            context.remove_optimizer_rule(rule)
    return context
