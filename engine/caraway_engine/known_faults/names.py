"""Keeps filters on the columns that they name.

When the physical optimizer moves a filter to an operator's input, it looks up columns by
unqualified name. Above a join of two tables with a column `id`, it may use the wrong `id`. See
apache/datafusion#25244. Fragments have unique column names, but statements that run whole do not.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

from datafusion import DataFrame, LogicalPlan, SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import nested_keys

_HASH_JOINS = "datafusion.optimizer.prefer_hash_join"
# The common setting for all dynamic filters would enable those of aggregates when restored.
_DYNAMIC_FILTERS = frozenset(
    f"datafusion.optimizer.enable_{each}_dynamic_filter_pushdown" for each in ("join", "topk")
)
_PARTITIONS = "datafusion.execution.target_partitions"
_lock = Lock()


@dataclass(frozen=True, slots=True)
class _Below:
    """The properties of a node and everything below it: shared column names, and right joins.

    `has_condition` says whether a join has a condition beside its equal keys. Such a join must not
    become a sort-merge join, as all do where a filter is above a right join; see `right_joins`.
    """

    shares_names: bool = False
    has_right_join: bool = False
    has_condition: bool = False
    forbidden: frozenset[str] = frozenset()

    @property
    def is_lost(self) -> bool:
        return self.has_condition and _HASH_JOINS in self.forbidden


def forbidden(context: SessionContext, plan: object) -> frozenset[str]:
    """Return the settings that must be off while an optimized plan is made physical.

    Dynamic filters come from joins and from top-k. A filter of the statement itself is misplaced
    only above a right join. Above a left join the lookup finds the last column of a name, and that
    side takes no filters. No filter passes a sort-merge join.

    Raises:
        InvalidQueryError: no setting makes the result right.
    """
    below = _look(context, getattr(plan, "_raw_plan", plan))
    if below.is_lost:
        raise InvalidQueryError(
            "the engine would return a wrong result for this statement: WHERE tests a FULL or "
            "RIGHT join, and a join has more than equal columns in ON; swap its two sides, or "
            "rename the columns of one side in a subquery"
        )
    return below.forbidden


def is_lost(context: SessionContext, plan: object) -> bool:
    """Return whether no setting makes the result of an optimized plan right; see `right_joins`."""
    return _look(context, getattr(plan, "_raw_plan", plan)).is_lost


def _look(context: SessionContext, raw: Any) -> _Below:
    inputs = [_look(context, each) for each in raw.inputs()]
    shares_names = any(each.shares_names for each in inputs)
    has_right_join = any(each.has_right_join for each in inputs)
    has_condition = any(each.has_condition for each in inputs)
    found = frozenset[str]().union(*(each.forbidden for each in inputs))
    try:
        variant = raw.to_variant()
    except Exception:  # noqa: BLE001 -- a node that is hidden from Python is not a relevant one
        return _Below(shares_names, has_right_join, has_condition, found)
    match type(variant).__name__:
        case "Join":
            if shares_names:
                found |= _DYNAMIC_FILTERS
            schema = context.create_dataframe_from_logical_plan(LogicalPlan(raw)).schema()
            shares_names |= len(set(schema.names)) < len(schema.names)
            found |= nested_keys.forbidden(context, raw.inputs(), variant, schema)
            is_right = str(variant.join_type()) == "Right"
            has_right_join |= is_right
            has_condition |= bool(variant.on()) and variant.filter() is not None
        case "Sort" if shares_names and variant.get_fetch_val() is not None:
            found |= _DYNAMIC_FILTERS
        case "Filter" if shares_names and has_right_join:
            found |= _DYNAMIC_FILTERS | {_HASH_JOINS}
    return _Below(shares_names, has_right_join, has_condition, found)


def without(context: SessionContext, dataframe: DataFrame, settings: frozenset[str]) -> DataFrame:
    """Plan a statement again with some settings off, and restore them afterwards.

    A plan keeps the settings that the context had when it was made. Plans made meanwhile by other
    threads also have them off; they are correct but may be slower.
    """
    if not settings:
        return dataframe
    with _lock:
        before = {name: _value(context, name) for name in (*settings, _PARTITIONS)}
        try:
            for name in settings:
                _set(context, name, "false")
            if before[_PARTITIONS] == "1":
                # With one partition, the engine only uses hash joins.
                _set(context, _PARTITIONS, "2")
            return context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        finally:
            for name, value in before.items():
                _set(context, name, value)


def _value(context: SessionContext, name: str) -> str:
    return str(context.sql(f"SHOW {name}").to_pydict()["value"][0])


def _set(context: SessionContext, name: str, value: str) -> None:
    context.sql(f"SET {name} = {value}").collect()
