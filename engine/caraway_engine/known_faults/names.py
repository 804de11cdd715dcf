"""Keeps filters on the columns that they name.

When the physical optimizer moves a filter to the input of an operator, it looks the columns up by
their bare names. Above a join of two tables with a column `id` it may take the other `id`. See
apache/datafusion#25244. Fragments have no two columns of one name; statements that run whole do.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

from datafusion import DataFrame, LogicalPlan, SessionContext

_HASH_JOINS = "datafusion.optimizer.prefer_hash_join"
# The one setting for all dynamic filters would switch those of aggregates on when it is restored.
_DYNAMIC_FILTERS = frozenset(
    f"datafusion.optimizer.enable_{each}_dynamic_filter_pushdown" for each in ("join", "topk")
)
_PARTITIONS = "datafusion.execution.target_partitions"
_lock = Lock()


@dataclass(frozen=True, slots=True)
class _Below:
    """What is at a node or below it: columns that share a name, and right joins."""

    shares_names: bool = False
    has_right_join: bool = False
    forbidden: frozenset[str] = frozenset()


def forbidden(context: SessionContext, plan: Any) -> frozenset[str]:
    """Return the settings that must be off while an optimized plan is made physical.

    Dynamic filters come from joins and top rows. A filter of the statement itself goes astray above
    a right join only: on a left join the last column of a name, which is the one that is found, is
    of the side that takes no filters. No filter passes a sort merge join.
    """
    return _look(context, getattr(plan, "_raw_plan", plan)).forbidden


def _look(context: SessionContext, raw: Any) -> _Below:
    inputs = [_look(context, each) for each in raw.inputs()]
    shares_names = any(each.shares_names for each in inputs)
    has_right_join = any(each.has_right_join for each in inputs)
    found = frozenset[str]().union(*(each.forbidden for each in inputs))
    try:
        variant = raw.to_variant()
    except Exception:  # A node that Python does not see is none of those that matter.
        return _Below(shares_names, has_right_join, found)
    match type(variant).__name__:
        case "Join":
            if shares_names:
                found |= _DYNAMIC_FILTERS
            names = context.create_dataframe_from_logical_plan(LogicalPlan(raw)).schema().names
            shares_names |= len(set(names)) < len(names)
            has_right_join |= str(variant.join_type()) == "Right"
        case "Sort" if shares_names and variant.get_fetch_val() is not None:
            found |= _DYNAMIC_FILTERS
        case "Filter" if shares_names and has_right_join:
            found |= _DYNAMIC_FILTERS | {_HASH_JOINS}
    return _Below(shares_names, has_right_join, found)


def without(context: SessionContext, dataframe: DataFrame, settings: frozenset[str]) -> DataFrame:
    """Plan a statement again with settings that are off. They are as before afterwards.

    A plan keeps the settings that the context had when it was made. One that is made meanwhile by
    another thread has them off, too, which is right and may be slower.
    """
    if not settings:
        return dataframe
    with _lock:
        before = {name: _value(context, name) for name in (*settings, _PARTITIONS)}
        try:
            for name in settings:
                _set(context, name, "false")
            if before[_PARTITIONS] == "1":
                # With one partition there are hash joins only.
                _set(context, _PARTITIONS, "2")
            return context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        finally:
            for name, value in before.items():
                _set(context, name, value)


def _value(context: SessionContext, name: str) -> str:
    return str(context.sql(f"SHOW {name}").to_pydict()["value"][0])


def _set(context: SessionContext, name: str, value: str) -> None:
    context.sql(f"SET {name} = {value}").collect()
