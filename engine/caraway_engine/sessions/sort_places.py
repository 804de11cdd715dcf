"""Decides whether a plan may sort each partition by itself, and end with the groups of a LIMIT.

Sorting in one place uses one core. For some unions it is the only right way: see
`contexts.PlanRun`.
"""

from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError

_WINDOW = "WindowExpr"
_SORTING = frozenset({"Sort", _WINDOW})
_LIMITED_GROUPS = frozenset({"Aggregate", "Limit"})


def may_be_apart(optimized: object) -> bool:
    """Return whether an optimized plan sorts, and has no union."""
    kinds = _kinds(optimized)
    return "Union" not in kinds and not kinds.isdisjoint(_SORTING)


def may_end_early(optimized: object) -> bool:
    """Return whether an optimized plan limits groups, and has no window."""
    kinds = _kinds(optimized)
    return kinds >= _LIMITED_GROUPS and _WINDOW not in kinds


def has_any(plan: object) -> bool:
    """Return whether a plan sorts; False where a part of it is hidden."""
    return not _kinds(plan).isdisjoint(_SORTING)


def _kinds(plan: object) -> frozenset[str]:
    try:
        return frozenset(each.kind for each in plan_nodes.nodes(plan))
    except HiddenError:
        return frozenset()
