"""Converts bound JSON values to typed Arrow scalars."""

import decimal
from typing import Any

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import ParametersError

_INT64 = range(-(2**63), 2**63)


def bind(name: str, value: object) -> pa.Scalar:
    """Convert a value: integers become Int64, or Decimal if they do not fit.

    Raises:
        ParametersError: the value is an object, a mixed array or a number of over 38 digits.
    """
    if isinstance(value, ArrowValue):
        return value.scalar
    try:
        return pa.scalar(_widened(value))
    except (pa.ArrowException, ValueError, OverflowError) as exc:
        raise ParametersError(
            f"parameter ${name}: {exc}; use null, true, false, a number, a string, or an array "
            "of one of these"
        ) from exc


def _widened(value: Any) -> Any:
    if isinstance(value, dict):
        raise ValueError("an object cannot be bound")
    if isinstance(value, list):
        return [_widened(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        return decimal.Decimal(value)
    return value
