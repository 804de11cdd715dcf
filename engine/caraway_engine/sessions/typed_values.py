"""Gives placeholders the types of their values where the engine would plan them as NULL.

The engine plans a statement before it binds the values. It takes the type of a placeholder from its
neighbours; without one the type is NULL, which most aggregates and `||` refuse. The rows of a
VALUES, the parts of a UNION and recursive CTEs keep the types that were planned, so that the value
2.5 next to the constant 1 becomes 2. A CAST gives a placeholder its type, and keeps the names of
columns. Where the engine takes only a literal, as in a call of `generate_series`, the value is
written into the text.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import pyarrow as pa

from caraway_core.sqltext import placeholders
from caraway_engine.errors import engine_messages as messages
from caraway_engine.statements import scalars

_Plan = TypeVar("_Plan")
_KEEPS_TYPES = re.compile(r"\b(?:values|union|intersect|except|recursive)\b", re.IGNORECASE)
_SQL_TYPES: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "TINYINT UNSIGNED",
    pa.uint16(): "SMALLINT UNSIGNED",
    pa.uint32(): "INT UNSIGNED",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.string_view(): "VARCHAR",
    pa.binary(): "BYTEA",
    pa.date32(): "DATE",
    pa.timestamp("s"): "TIMESTAMP(0)",
    pa.timestamp("ms"): "TIMESTAMP(3)",
    pa.timestamp("us"): "TIMESTAMP(6)",
    pa.timestamp("ns"): "TIMESTAMP(9)",
    pa.month_day_nano_interval(): "INTERVAL",
}
_ENGINE_TYPES: Mapping[pa.DataType, str] = {
    pa.large_binary(): "LargeBinary",
    pa.date64(): "Date64",
    pa.time32("s"): "Time32(Second)",
    pa.time32("ms"): "Time32(Millisecond)",
    pa.time64("us"): "Time64(Microsecond)",
    pa.time64("ns"): "Time64(Nanosecond)",
    pa.duration("s"): "Duration(Second)",
    pa.duration("ms"): "Duration(Millisecond)",
    pa.duration("us"): "Duration(Microsecond)",
    pa.duration("ns"): "Duration(Nanosecond)",
}
"""Types without a name in SQL. They are named as `arrow_cast` names them."""
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def planned(sql: str, values: Mapping[str, pa.Scalar], plan: Callable[[str], _Plan]) -> _Plan:
    """Plan a statement as it is, or with the types of its values or the values where they matter.

    `plan` binds the values to a text.

    Raises:
        Exception: the engine cannot plan it; the error is about the types of the values.
    """
    try:
        return _typed(sql, values, plan)
    except Exception as exc:
        if not values or messages.find(messages.ONLY_LITERALS, exc) is None:
            raise
        written = literally(sql, values)
        if written is None:
            raise
        return plan(written)


def _typed(sql: str, values: Mapping[str, pa.Scalar], plan: Callable[[str], _Plan]) -> _Plan:
    sql = scalars.within(sql, values)
    if values and _KEEPS_TYPES.search(sql) and (typed := within(sql, values)):
        try:
            return plan(typed)
        except Exception as exc:
            if not messages.ROW_OF_EXPRESSIONS.find(exc):
                raise
            return plan(sql)
    try:
        return plan(sql)
    except Exception as exc:
        if not values or messages.find(messages.SYNTAX, exc):
            raise
        typed = within(sql, values)
        if typed is None or messages.ROW_OF_EXPRESSIONS.find(exc):
            raise
        return plan(typed)


def within(sql: str, values: Mapping[str, pa.Scalar]) -> str | None:
    """Return the text with the type of each value, or None if no value has one.

    NULL has no type unless the client gives one.
    """
    typed = {
        name: cast
        for name, value in values.items()
        if (cast := _cast(f"${name}", value.type)) is not None
    }
    return placeholders.replaced(sql, typed) if typed else None


def literally(sql: str, values: Mapping[str, pa.Scalar]) -> str | None:
    """Return the text with numbers and texts in place of their placeholders, or None without any.

    Values of other types stay bound.
    """
    written = {name: text for name, value in values.items() if (text := _literal(value))}
    return placeholders.replaced(sql, written) if written else None


def _literal(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    if pa.types.is_integer(value.type):
        # Parentheses, since `--` would begin a comment.
        return str(value.as_py()) if value.as_py() >= 0 else f"({value.as_py()})"
    if _SQL_TYPES.get(value.type) == "VARCHAR":
        text = str(value.as_py()).replace("'", "''")
        return f"'{text}'"
    return None


def _cast(placeholder: str, kind: pa.DataType) -> str | None:
    if (name := _sql_type(kind)) is not None:
        return f"CAST({placeholder} AS {name})"
    if pa.types.is_timestamp(kind) and kind.tz and "'" not in kind.tz:
        name = f'Timestamp({_UNITS[kind.unit]}, Some("{kind.tz}"))'
    else:
        name = _ENGINE_TYPES.get(kind)
    return f"arrow_cast({placeholder}, '{name}')" if name is not None else None


def _sql_type(kind: pa.DataType) -> str | None:
    if pa.types.is_decimal(kind) and kind.bit_width >= 128:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        item = _sql_type(kind.value_type)
        return f"{item}[]" if item is not None else None
    return _SQL_TYPES.get(kind)
