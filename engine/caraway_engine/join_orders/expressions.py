"""Reads expressions of plans: their columns, their conjuncts, and how many rows they let pass."""

from collections.abc import Iterator, Mapping
from typing import Any

from datafusion import Expr

from caraway_core.tables.ranges import number_of
from caraway_engine.join_orders.facts import ColumnFacts
from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError

_MOVABLE = frozenset(
    {"Column", "Literal", "BinaryExpr", "Cast", "Between", "InList", "Like", "Not", "Negative",
     "IsNull", "IsNotNull", "IsTrue", "IsFalse", "Case", "ScalarVariable"}
)  # fmt: skip
"""Expressions that a join may compute at another place: they have no effect and no plan inside."""
_UNKNOWN, _LIKE, _NULL, _COMPARED = 0.2, 0.1, 0.05, 1 / 3
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
Columns = Mapping[str, ColumnFacts]


def conjuncts(expression: Any) -> Iterator[object]:
    """Yield the conditions that an AND joins, however deep."""
    parts = plan_nodes.chained(expression)
    if len(parts) == 1 or expression.to_variant().op() != "AND":
        yield expression
        return
    for part in parts:
        yield from conjuncts(part)


def is_movable(expression: object) -> bool:
    """Return whether a condition may be computed at another place in a tree of joins."""
    try:
        return all(part.kind in _MOVABLE for part in plan_nodes.inside(expression))
    except HiddenError:
        return False


def columns(expression: Any) -> frozenset[str]:
    """Return the qualified names of the columns of an expression.

    Raises:
        HiddenError: a part of it is not visible.
    """
    return frozenset(
        part.expression.to_variant().qualified_name()
        for part in plan_nodes.inside(expression)
        if part.kind == "Column"
    )


def column(expression: Any) -> str | None:
    """Return the qualified name of an expression that is a column, or None."""
    if expression.variant_name() != "Column":
        return None
    name: str = expression.to_variant().qualified_name()
    return name


def passing(expression: Any, known: Columns, rows: float) -> float:
    """Return the estimated share of rows that a condition lets pass."""
    kind = expression.variant_name()
    operands = [] if kind in ("Column", "Literal") else _operands(expression)
    if kind == "BinaryExpr" and len(operands) >= 2:
        return _binary(expression.to_variant().op(), expression, known, rows)
    if kind == "Like":
        return 1 - _LIKE if expression.to_variant().negated() else _LIKE
    if kind == "InList" and operands:
        facts = known.get(column(operands[0]) or "", ColumnFacts())
        share = min(1.0, (len(operands) - 1) / facts.distinct_of(rows))
        return 1 - share if expression.to_variant().negated() else share
    if kind == "Not" and operands:
        return 1 - passing(operands[0], known, rows)
    return {"IsNull": _NULL, "IsNotNull": 1 - _NULL}.get(kind, _UNKNOWN)


def _operands(expression: Any) -> list[object]:
    try:
        found: list[Any] = expression.rex_call_operands()
    except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
        return []
    return found


def _binary(operator: str, expression: Any, known: Columns, rows: float) -> float:
    if operator in ("AND", "OR"):
        share = 1.0
        for part in plan_nodes.chained(expression):
            passed = passing(part, known, rows)
            share *= passed if operator == "AND" else 1 - passed
        return share if operator == "AND" else 1 - share
    left, right = map(_uncast, expression.rex_call_operands())
    if left.variant_name() == "Literal":
        left, right, operator = right, left, _FLIPPED.get(operator, operator)
    facts = known.get(column(left) or "", ColumnFacts())
    if operator in ("=", "!="):
        distinct = facts.distinct_of(rows)
        if other := column(right):
            distinct = max(distinct, known.get(other, ColumnFacts()).distinct_of(rows))
        return 1 / distinct if operator == "=" else 1 - 1 / distinct
    if operator not in _FLIPPED:
        return _UNKNOWN
    below = _below(facts, right)
    if below is None:
        return _COMPARED
    return below if operator in ("<", "<=") else 1 - below


def _below(facts: ColumnFacts, literal: Any) -> float | None:
    """Return the share of a column's range below a literal."""
    if literal.variant_name() != "Literal" or facts.least is None or facts.greatest is None:
        return None
    try:
        value = number_of(Expr(literal).python_value().as_py())
    except Exception:  # noqa: BLE001 -- Python has no value for some literals
        return None
    if value is None:
        return None
    width = max(facts.greatest - facts.least, 1e-9)
    return min(1.0, max(0.0, (value - facts.least) / width))


def _uncast(expression: Any) -> Any:
    while expression.variant_name() == "Cast":
        (expression,) = expression.rex_call_operands()
    return expression
