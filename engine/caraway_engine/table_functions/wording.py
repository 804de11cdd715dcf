"""Writes expressions of a plan as SQL text that means the same.

The engine's own unparser drops time zones and units of time. Here each constant and cast names its
exact type. Not every expression can be written; callers plan the text again and compare.
"""

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from datafusion.expr import Expr

from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError

_SYMBOLS = {"BIT_XOR": "^"}
_AFTER = {
    "IsNull": "IS NULL", "IsNotNull": "IS NOT NULL", "IsTrue": "IS TRUE", "IsFalse": "IS FALSE",
    "IsUnknown": "IS UNKNOWN", "IsNotTrue": "IS NOT TRUE", "IsNotFalse": "IS NOT FALSE",
    "IsNotUnknown": "IS NOT UNKNOWN",
}  # fmt: skip
_BEFORE = {"Not": "NOT", "Negative": "-"}
_UNITS = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
_PLAIN = {
    pa.bool_(): "Boolean", pa.int8(): "Int8", pa.int16(): "Int16", pa.int32(): "Int32",
    pa.int64(): "Int64", pa.uint8(): "UInt8", pa.uint16(): "UInt16", pa.uint32(): "UInt32",
    pa.uint64(): "UInt64", pa.float16(): "Float16", pa.float32(): "Float32",
    pa.float64(): "Float64", pa.string(): "Utf8", pa.large_string(): "LargeUtf8",
    pa.string_view(): "Utf8View", pa.binary(): "Binary", pa.large_binary(): "LargeBinary",
    pa.binary_view(): "BinaryView", pa.date32(): "Date32", pa.date64(): "Date64",
}  # fmt: skip
_DEEPEST = 200
TypeOf = Callable[[Any], pa.DataType]
"""Returns the type of an expression."""


def worded(
    expression: Any,
    column: Callable[[str], str],
    type_of: TypeOf,
    *,
    is_short: bool = False,
    depth: int = 0,
) -> str:
    """Write an expression over the columns of one table, each as `column` writes it.

    If `is_short`, texts and integers do not name their exact types, which may follow from the rest.

    Raises:
        HiddenError: a part of it cannot be written.
    """
    if depth > _DEEPEST:
        raise HiddenError("depth")

    def inner(part: object) -> str:
        return worded(part, column, type_of, is_short=is_short, depth=depth + 1)

    kind = expression.variant_name()
    if kind == "Column":
        return column(expression.to_variant().name())
    if kind == "Literal":
        value = expression.python_value()
        return literal(_short(value) if is_short else value)
    if kind == "ScalarFunction":
        arguments = ", ".join(map(inner, expression.rex_call_operands()))
        return f"{expression.rex_call_operator()}({arguments})"
    chain = plan_nodes.chained(expression)
    if len(chain) > 1:
        return f"({f' {expression.to_variant().op()} '.join(map(inner, chain))})"
    operands = expression.rex_call_operands()
    variant = expression.to_variant()
    match kind:
        case "BinaryExpr":
            left, right = map(inner, operands)
            return f"({left} {_SYMBOLS.get(variant.op(), variant.op())} {right})"
        case _ if kind in _AFTER:
            return f"({inner(operands[0])} {_AFTER[kind]})"
        case _ if kind in _BEFORE:
            return f"({_BEFORE[kind]} {inner(operands[0])})"
        case "Cast":
            return f"arrow_cast({inner(operands[0])}, '{type_name(type_of(expression))}')"
        case "TryCast":
            return f"arrow_try_cast({inner(operands[0])}, '{type_name(type_of(expression))}')"
        case "InList":
            value, *values = map(inner, operands)
            word = "NOT IN" if variant.negated() else "IN"
            return f"({value} {word} ({', '.join(values)}))"
        case "Between":
            value, low, high = map(inner, operands)
            word = "NOT BETWEEN" if variant.negated() else "BETWEEN"
            return f"({value} {word} {low} AND {high})"
        case "Like" | "ILike" | "SimilarTo" | "RLike":
            return _pattern(expression, variant, *map(inner, operands))
        case "Case":
            return _case(variant, inner)
    raise HiddenError(kind)


def _pattern(expression: Any, variant: Any, value: str, pattern: str) -> str:
    word = expression.rex_call_operator().upper()
    negation = "NOT " if variant.negated() and not word.startswith("NOT ") else ""
    escape = f" ESCAPE {_text(variant.escape_char())}" if variant.escape_char() else ""
    return f"({value} {negation}{word} {pattern}{escape})"


def _case(variant: Any, inner: Callable[[object], str]) -> str:
    base, other = variant.expr(), variant.else_expr()
    pieces = ["(CASE", *([inner(base)] if base else [])]
    pieces += [f"WHEN {inner(when)} THEN {inner(then)}" for when, then in variant.when_then_expr()]
    pieces += [f"ELSE {inner(other)}"] if other else []
    return " ".join((*pieces, "END)"))


def _short(value: pa.Scalar) -> pa.Scalar:
    """Return a text or an integer as the type that a plain constant has."""
    kind = value.type
    if value.is_valid and (pa.types.is_string_view(kind) or pa.types.is_large_string(kind)):
        return pa.scalar(value.as_py(), pa.string())
    if value.is_valid and pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.scalar(value.as_py(), pa.int64())
    return value


def literal(value: pa.Scalar) -> str:
    """Write a constant with its exact type.

    Raises:
        HiddenError: constants of its type cannot be written.
    """
    kind = value.type
    if not value.is_valid:
        return "NULL" if pa.types.is_null(kind) else f"arrow_cast(NULL, '{type_name(kind)}')"
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_int64(kind):
        return str(value.as_py())
    if pa.types.is_string(kind):
        return _text(value.as_py())
    return f"arrow_cast({_exact(value)}, '{type_name(kind)}')"


def _exact(value: pa.Scalar) -> str:
    kind = value.type
    if pa.types.is_integer(kind):
        return str(value.as_py())
    if pa.types.is_floating(kind):
        number = value.as_py()
        return _text(repr(number) if math.isfinite(number) else str(number))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _text(value.as_py())
    if pa.types.is_decimal(kind):
        return _text(format(value.as_py(), "f"))
    if pa.types.is_date32(kind):
        return f"arrow_cast({value.cast(pa.int32()).as_py()}, 'Int32')"
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return str(value.cast(pa.int64()).as_py())
    if pa.types.is_binary(kind):
        return f"X'{value.as_py().hex()}'"
    raise HiddenError(str(kind))


def type_name(kind: pa.DataType) -> str:
    """Return the engine's name of a type.

    Raises:
        HiddenError: it is a nested type, or another one without a name here.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        zone = f'Some("{kind.tz}")' if kind.tz else "None"
        return f"Timestamp({_UNITS[kind.unit]}, {zone})"
    if pa.types.is_duration(kind):
        return f"Duration({_UNITS[kind.unit]})"
    if pa.types.is_time(kind):
        bits = 32 if pa.types.is_time32(kind) else 64
        return f"Time{bits}({_UNITS[kind.unit]})"
    if pa.types.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    raise HiddenError(str(kind))


def _text(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def type_in(frame: Any) -> TypeOf:
    """Return what finds the types of expressions over the columns of a dataframe."""
    return lambda expression: frame.select(Expr(expression)).schema().field(0).type
