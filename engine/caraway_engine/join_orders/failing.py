"""Tells which conditions cannot fail, whatever rows they are computed for.

A condition that moves is computed for rows that another join removed before. A cast of a text that
is no number would then fail a statement that had an answer.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from caraway_engine.statements import plan_nodes

types = pa.types
TypeOf = Callable[[Any], pa.DataType | None]
"""Returns the type of an expression; None if it is not known."""
_SAFE = frozenset({"=", "!=", "<", "<=", ">", ">=", "AND", "OR",
                   "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})  # fmt: skip
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def cannot_fail(condition: object, type_of: TypeOf) -> bool:
    """Return whether a condition has a value for all rows."""
    for part in plan_nodes.inside(condition):
        match part.kind:
            case "Negative":
                return False
            case "BinaryExpr" if part.expression.to_variant().op() not in _SAFE:
                return False
            case "Cast":
                (inner,) = part.expression.rex_call_operands()
                if inner.variant_name() != "Literal" and not _widens(
                    type_of(inner), type_of(part.expression)
                ):
                    return False
    return True


def _widens(source: pa.DataType | None, target: pa.DataType | None) -> bool:
    """Return whether each value of a type is one of another."""
    if source is None or target is None:
        return False
    if source == target or (_is_text(source) and _is_text(target)):
        return True
    if types.is_integer(source) and types.is_integer(target):
        is_signed = types.is_signed_integer(target)
        has_sign = types.is_signed_integer(source)
        is_wider = target.bit_width > source.bit_width
        return bool(is_wider and (is_signed or not has_sign))
    if types.is_floating(target):
        is_wider = types.is_floating(source) and target.bit_width > source.bit_width
        return bool(is_wider or types.is_integer(source) or types.is_decimal(source))
    if types.is_decimal(target):
        room: int = target.precision - target.scale
        if types.is_integer(source):
            return room >= _DIGITS[source.bit_width]
        return bool(types.is_decimal(source) and room >= source.precision - source.scale)
    return False


def _is_text(type_: pa.DataType) -> bool:
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(each(type_) for each in tests)
