"""Decorrelates plans with an optimizer that only turns subqueries into joins."""

from functools import cache
from typing import Any

from datafusion import LogicalPlan, SessionConfig, SessionContext

RULES = frozenset(
    {"rewrite_set_comparison", "decorrelate_predicate_subquery", "scalar_subquery_to_join",
     "decorrelate_lateral_join", "replace_distinct_aggregate"}
)  # fmt: skip
_AFTER = "logical_plan after "


def frame(raw: object, simplifies: bool = False) -> Any:
    """Return a dataframe for a plan that is to be decorrelated."""
    return decorrelating(simplifies).create_dataframe_from_logical_plan(LogicalPlan(raw))


@cache
def one_row(simplifies: bool) -> Any:
    """Return a one-row dataframe, to which a subquery can be added."""
    return decorrelating(simplifies).sql("SELECT 1")


@cache
def decorrelating(simplifies: bool = False) -> SessionContext:
    """Return the context that only decorrelates. Plans bring their own tables."""
    config = (
        SessionConfig()
        .set("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", "false")
        .set("datafusion.optimizer.max_passes", "1")
    )
    context = SessionContext(config)
    kept = RULES | {"simplify_expressions"} if simplifies else RULES
    for step in context.sql("EXPLAIN VERBOSE SELECT 1").to_pydict()["plan_type"]:
        rule = step.removeprefix(_AFTER)
        if rule != step and rule not in kept:
            context.remove_optimizer_rule(rule)
    return context
