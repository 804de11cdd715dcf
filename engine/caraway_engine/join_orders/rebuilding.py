"""Rebuilds plans over other inputs. Expressions are passed on as they are."""

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

from datafusion import DataFrame, Expr, LogicalPlan, SessionContext
from datafusion.expr import SortExpr

from caraway_engine.statements import plan_nodes

_ALIAS = re.compile(r"[a-z_][a-z0-9_]*")
_JOINS = {
    "Inner": "inner",
    "Left": "left",
    "Right": "right",
    "Full": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
}


class NotRebuiltError(Exception):
    """Python cannot rebuild a node."""


def frame(context: SessionContext, raw: object) -> DataFrame:
    """Return a plan as it is."""
    return context.create_dataframe_from_logical_plan(LogicalPlan(raw))


def rebuilt(raw: object, inputs: Sequence[DataFrame]) -> DataFrame:
    """Return a node with other inputs, which have the same columns.

    Raises:
        NotRebuiltError: Python cannot rebuild nodes of its kind.
    """
    node = plan_nodes.typed(raw)
    variant, first = node.variant, inputs[0]
    match node.kind:
        case "Projection":
            return first.select(*map(Expr, variant.projections()))
        case "Filter":
            return first.filter(Expr(variant.predicate()))
        case "Aggregate":
            groups = list(map(Expr, variant.group_by_exprs()))
            return first.aggregate(groups, list(map(Expr, variant.aggregate_exprs())))
        case "SubqueryAlias" if _ALIAS.fullmatch(variant.alias()):
            return first.alias(variant.alias())
        case "Sort":
            sorted_ = first.sort(*map(_sort_key, variant.sort_exprs()))
            fetch = variant.get_fetch_val()
            return sorted_ if fetch is None else sorted_.limit(fetch)
        case "Distinct":
            return first.distinct()
        case "Union":
            return reduce(DataFrame.union, inputs)
        case "WindowExpr":
            return first.select(*_columns(first), *map(Expr, variant.get_window_expr()))
        case "Join":
            return _joined(variant, *inputs)
    raise NotRebuiltError(node.kind)


def _columns(rows: DataFrame) -> list[Expr]:
    exprs: list[Expr] = rows.find_qualified_columns(*rows.schema().names)
    return exprs


def _sort_key(raw: Any) -> SortExpr:
    return SortExpr(Expr(raw.expr()), raw.ascending(), raw.nulls_first())


def _joined(variant: Any, left: DataFrame, right: DataFrame) -> DataFrame:
    how: object = _JOINS.get(str(variant.join_type()))
    if how is None or variant.null_equals_null():
        raise NotRebuiltError(str(variant.join_type()))
    conditions = [Expr(mine) == Expr(its) for mine, its in variant.on()]
    if (rest := variant.filter()) is not None:
        conditions.append(Expr(rest))
    return left.join_on(right, *conditions, how=how)
