"""Finds the plans of subqueries inside expressions, which DataFusion 55 hides from Python.

An optimizer with only the decorrelation rules turns subqueries into joins, which are visible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import LogicalPlan
from datafusion.expr import Expr
from datafusion.substrait import Producer
from substrait.algebra_pb2 import ReadRel
from substrait.plan_pb2 import Plan

from caraway_engine.statements import decorrelation, plan_nodes
from caraway_engine.statements.plan_nodes import SUBQUERIES, ExpressionPart, HiddenError, PlanNode


@dataclass(frozen=True, slots=True)
class Subplan:
    """The plan of a subquery, and the correlated predicates that join it to the outer plan.

    If `is_simplified`, the plan was simplified, so functions of constants may be missing.
    """

    plan: Any
    condition: tuple[object, ...]
    is_simplified: bool


def subplan(part: ExpressionPart, node: PlanNode) -> Subplan:
    """Return the plan of a subquery in an expression of a node.

    It is decorrelated: nested subqueries are joins, where the engine can convert them.

    Raises:
        HiddenError: the engine cannot turn it into a join.
    """
    # Some predicates only turn out to be correlated after simplification.
    for simplifies in (False, True):
        for lift in (_alone, _above):
            try:
                join = _topmost_join(lift(part, node, simplifies))
            except Exception:  # noqa: BLE001 -- the engine fails in many different ways
                continue
            return Subplan(join.right(), tuple(plan_nodes.of_join(join)), simplifies)
    raise HiddenError(part.kind)


def _alone(part: ExpressionPart, _node: PlanNode, simplifies: bool) -> Any:
    """Plan a query of only the subquery, which is cheap to decorrelate."""
    if part.kind == "Exists":
        return decorrelation.one_row(simplifies).filter(Expr(part.expression))
    if part.kind == "ScalarSubquery":
        return decorrelation.one_row(simplifies).select(Expr(part.expression))
    raise HiddenError(part.kind)


def _above(part: ExpressionPart, node: PlanNode, simplifies: bool) -> Any:
    """Plan the subquery on top of its node's input, whose columns it may reference."""
    expression = Expr(part.expression)
    is_condition = part.kind != "ScalarSubquery"
    return _below(node, simplifies).filter(expression if is_condition else expression.is_not_null())


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The tables and functions that a part of a plan mentions anywhere."""

    tables: tuple[tuple[str, ...], ...]
    functions: frozenset[str]


def mentioned(node: PlanNode) -> Mentioned:
    """Return what a node and everything below it mention, even in hidden expressions.

    Raises:
        HiddenError: the plan cannot be expressed in Substrait either.
    """
    plan = Plan()
    try:
        written = Producer.to_substrait_plan(LogicalPlan(node.plan), decorrelation.decorrelating())
        plan.ParseFromString(written.encode())
    except Exception as exc:
        raise HiddenError(node.kind) from exc
    declared = (each.extension_function.name for each in plan.extensions)
    return Mentioned(tuple(_named_tables(plan)), frozenset(declared))


def _named_tables(message: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(message, ReadRel) and message.HasField("named_table"):
        yield tuple(message.named_table.names)
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for each in value if descriptor.is_repeated else (value,):
                yield from _named_tables(each)


def schema(raw: Any) -> pa.Schema:
    """Return the output columns of a plan."""
    return pa.schema(decorrelation.frame(raw).schema())


def may_be_null(part: ExpressionPart, node: PlanNode, found: Subplan) -> bool:
    """Return whether NULL is possible on the left of IN or in its subquery, which is `found`."""
    fields = list(schema(found.plan))
    if len(fields) > 1 or fields[0].nullable:
        return True
    left = part.expression.rex_call_operands()[0]
    return bool(_below(node).select(Expr(left)).schema().field(0).nullable)


def _below(node: PlanNode, simplifies: bool = False) -> Any:
    inputs = node.plan.inputs()
    return decorrelation.frame(inputs[0] if len(inputs) == 1 else node.plan, simplifies)


def _topmost_join(frame: Any) -> Any:
    """Return the join that decorrelation put on top of all others."""
    for node in plan_nodes.nodes(frame.optimized_logical_plan()):
        if node.kind == "Join":
            return node.variant
        parts = (part for each in plan_nodes.expressions(node) for part in plan_nodes.inside(each))
        if any(part.kind in SUBQUERIES for part in parts):
            break
    raise HiddenError("Join")
