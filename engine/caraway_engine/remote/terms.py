"""Translates conditions of a scan to the filters of sources that have no SQL."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caraway_core.tables.scanners import ColumnFilter, FilterOperator
from caraway_engine.remote import filters
from caraway_engine.remote.filters import FilterCall
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.locally import LocalCondition

_OPERATORS: dict[str, tuple[FilterOperator, FilterOperator]] = {
    "equal": ("=", "="),
    "not_equal": ("<>", "<>"),
    "less": ("<", ">"),
    "less_equal": ("<=", ">="),
    "greater": (">", "<"),
    "greater_equal": (">=", "<="),
}
"""The operator of each function, and that with the value before the column."""
_VALUES = frozenset({bool, int, str, bytes, Decimal, date, datetime, time})
_NULL_TESTS: dict[str, FilterOperator] = {"is_null": "is null", "is_valid": "is not null"}


def column_filters(
    condition: LocalCondition, schema: pa.Schema
) -> tuple[tuple[ColumnFilter, ...], bool]:
    """Return the filters of a condition, and whether they are all of it."""
    found = []
    for call in condition.calls:
        try:
            found.append(_filter(call, schema))
        except NotPushableError:
            continue
    return tuple(found), condition.unread is None and len(found) == len(condition.calls)


def _filter(call: FilterCall, schema: pa.Schema) -> ColumnFilter:
    if call.name == "field":
        return ColumnFilter(_column(call, schema), "=", True)
    if call.name == "invert" and call.operands[0].name == "field":
        return ColumnFilter(_column(call.operands[0], schema), "=", False)
    if call.name in _NULL_TESTS:
        return ColumnFilter(_column(call.operands[0], schema), _NULL_TESTS[call.name])
    if call.name == "is_in":
        name, options = _column(call.operands[0], schema), filters.options(call)
        if not _compare(options.type, schema.field(name).type):
            raise NotPushableError(call.name)
        return ColumnFilter(name, "in", tuple(map(_value, options.drop_null())))
    if call.name in _OPERATORS:
        left, right = call.operands
        is_turned = left.name == "literal"
        column, value = (right, left) if is_turned else (left, right)
        if column.name != "field" or value.name != "literal":
            raise NotPushableError(call.name)
        name = _column(column, schema)
        if not _compare(value.value.type, schema.field(name).type):
            raise NotPushableError(call.name)
        return ColumnFilter(name, _OPERATORS[call.name][is_turned], _value(value.value))
    raise NotPushableError(call.name)


def _column(call: FilterCall, schema: pa.Schema) -> str:
    if call.name != "field" or pa.types.is_floating(schema.field(call.value).type):
        raise NotPushableError(call.name)  # NaN and -0.0 compare otherwise elsewhere.
    return str(call.value)


def _compare(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether values of Python compare as those of the two types."""
    return left == right or any(test(left) and test(right) for test in _FAMILIES)


def _value(scalar: pa.Scalar) -> Any:
    value = filters.value_of(scalar)
    if type(value) not in _VALUES:  # Also NULL, and moments of nanoseconds.
        raise NotPushableError(f"a value of {type(value).__name__}")
    return value


def _is_text(type_: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(type_) for test in tests)


_FAMILIES = (pa.types.is_integer, _is_text)
