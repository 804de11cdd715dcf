"""Finds which columns of a search a statement reads, and how many of its rows."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_core.ids import TableName
from caraway_engine.statements import plan_facts, plan_nodes, subplans
from caraway_engine.statements.plan_nodes import HiddenError, PlanNode


@dataclass(frozen=True, slots=True)
class WantedRows:
    """The columns that are read, and the most of the best rows; None means all rows."""

    columns: frozenset[str]
    most: int | None


def of(
    optimized: Any, scores: Mapping[TableName, str | None], filtered: Collection[TableName]
) -> dict[TableName, WantedRows] | None:
    """Return what an optimized plan reads of each table; `scores` names their score columns.

    The rows of the `filtered` tables already pass the conditions above them. A table that the plan
    does not read is missing. Returns None if a part of the plan is hidden.
    """
    try:
        return _of(optimized, scores, filtered)
    except HiddenError:
        return None


def _of(
    optimized: object, scores: Mapping[TableName, str | None], filtered: Collection[TableName]
) -> dict[TableName, WantedRows]:
    found: dict[TableName, WantedRows] = {}
    waiting: list[tuple[Any, _Needed]] = [(_raw(optimized), _ALL)]
    while waiting:
        each, needed = waiting.pop()
        raw = _raw(each)
        node = plan_nodes.typed(raw)
        if node.kind == "TableScan":
            name = plan_facts.table_name(*node.variant.fqn())
            if name in scores:
                is_best = needed.by in (None, scores[name])
                mine = WantedRows(_columns(node), needed.most if is_best else None)
                again = found.get(name)
                found[name] = mine if again is None else _both(again, mine)
            continue
        if node.kind != "Filter" or not _is_above(node, filtered):
            needed = _passed(node, needed)
        waiting += [(below, needed) for below in raw.inputs()]
        waiting += [(below, _ALL) for below in _subqueries(node)]
    return found


def _raw(plan: object) -> Any:
    return getattr(plan, "_raw_plan", plan)


def _subqueries(node: PlanNode) -> Iterator[Any]:
    """Yield the plans of the subqueries that the optimizer leaves in expressions."""
    for expression in plan_nodes.expressions(node):
        for part in plan_nodes.inside(expression):
            if part.kind in plan_nodes.SUBQUERIES:
                yield subplans.subplan(part, node).plan


@dataclass(frozen=True, slots=True)
class _Needed:
    """The number of rows that an operator needs: the greatest of the column `by`, or any."""

    most: int | None = None
    by: str | None = None


_ALL = _Needed()


def _both(one: WantedRows, other: WantedRows) -> WantedRows:
    return WantedRows(one.columns | other.columns, None)


def _columns(node: PlanNode) -> frozenset[str]:
    projection = node.variant.projection()
    if projection is None:
        return frozenset(subplans.schema(node.plan).names)
    return frozenset(name for _, name in projection)


def _is_above(node: PlanNode, tables: Collection[TableName]) -> bool:
    below = plan_nodes.typed(node.plan.inputs()[0])
    return below.kind == "TableScan" and plan_facts.table_name(*below.variant.fqn()) in tables


def _passed(node: PlanNode, needed: _Needed) -> _Needed:
    """Return what an operator needs of its input. Without an order, the best rows will do."""
    match node.kind:
        case "Limit":
            fetch, skip = _number(node.variant.fetch()), _number(node.variant.skip())
            counts = [fetch, needed.most if needed.by is None else None]
            known = [each for each in counts if each is not None]
            return _Needed(min(known) + (skip or 0)) if known else _ALL
        case "Sort":
            fetch = node.variant.get_fetch_val()
            if fetch is None and (needed.most is None or needed.by is not None):
                return needed
            counts = [fetch, needed.most if needed.by is None else None]
            most = min(each for each in counts if each is not None)
            (first, *others) = node.variant.sort_exprs()
            key = _sorted(first.expr())
            if others or first.ascending() or key.variant_name() != "Column":
                return _ALL
            return _Needed(most, key.to_variant().name())
        case "SubqueryAlias":
            return needed
        case "Projection":
            return _below(node, needed)
    return _ALL


def _sorted(key: Any) -> Any:
    """Return the float that a key sorts by one form of; see `known_faults.float_forms`."""
    inner = key
    while inner.variant_name() == "Alias":
        (inner,) = inner.rex_call_operands()
    if inner.variant_name() != "ScalarFunction" or inner.rex_call_operator() != "nanvl":
        return key
    difference = inner.rex_call_operands()[0]
    if difference.variant_name() != "BinaryExpr" or difference.rex_call_operator() != "-":
        return key
    return difference.rex_call_operands()[0]


def _below(node: PlanNode, needed: _Needed) -> _Needed:
    """Name the column by which rows are ordered as it is called below a projection."""
    if needed.by is None:
        return needed
    projected = zip(subplans.schema(node.plan).names, node.variant.projections(), strict=True)
    (column, *others) = [each for name, each in projected if name == needed.by]
    while column.variant_name() == "Alias":
        (column,) = column.rex_call_operands()
    if others or column.variant_name() != "Column":
        return _ALL
    return _Needed(needed.most, column.to_variant().name())


def _number(expression: Any) -> int | None:
    if expression is None or expression.variant_name() != "Literal":
        return None
    value = expression.python_value()
    return int(value.as_py()) if value.is_valid else None
