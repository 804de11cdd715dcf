"""Converts bound JSON values to typed Arrow scalars."""

import decimal
from collections.abc import Mapping

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import ParametersError
from caraway_core.sqltext import placeholders

_INT64 = range(-(2**63), 2**63)
_WRAPPER = "caraway_value"
"""The field of a structure that holds a value which cannot be bound by itself."""


def values(parameters: Mapping[str, object]) -> dict[str, pa.Scalar]:
    """Convert all parameters of a statement; its text has to be passed through `within`.

    Raises:
        ParametersError: as in `bind`.
    """
    return {name: bind(name, value) for name, value in parameters.items()}


def within(sql: str, values: Mapping[str, pa.Scalar]) -> str:
    """Return the text of a statement that reads these values."""
    wrapped = {
        name: f"get_field(${name}, '{_WRAPPER}')"
        for name, value in values.items()
        if _is_wrapper(value.type)
    }
    return placeholders.replaced(sql, wrapped) if wrapped else sql


def bind(name: str, value: object) -> pa.Scalar:
    """Convert a value: integers become Int64, or Decimal if they do not fit.

    Raises:
        ParametersError: the value is an object, a mixed array or a number of over 38 digits.
    """
    if isinstance(value, ArrowValue):
        return _of_arrow(name, value.array)
    try:
        return pa.scalar(_widened(value))
    except (pa.ArrowException, ValueError, OverflowError) as exc:
        raise ParametersError(
            f"parameter ${name}: {exc}; use null, true, false, a number, a string, or an array "
            "of one of these"
        ) from exc


def _of_arrow(name: str, array: pa.Array) -> pa.Scalar:
    """Return a value that DataFusion takes; it makes an array of the scalar again for that.

    pyarrow cannot do so with a NULL list, nor with NULLs of no type. Within a structure it can.
    """
    scalar = array[0]
    try:
        pa.array([scalar], scalar.type)
        return scalar
    # TypeError and SystemError: faults of pyarrow that depend on the type.
    except (pa.ArrowException, TypeError, ValueError, SystemError):
        pass
    try:
        typed = array.cast(_typed(array.type))
        wrapped = pa.StructArray.from_arrays([typed], [_WRAPPER])[0]
        pa.array([wrapped], wrapped.type)
    except (pa.ArrowException, TypeError, ValueError, SystemError) as exc:
        raise ParametersError(f"parameter ${name}: a {array.type} cannot be bound") from exc
    return wrapped


def _is_wrapper(kind: pa.DataType) -> bool:
    is_one = pa.types.is_struct(kind) and kind.num_fields == 1
    return bool(is_one and kind.field(0).name == _WRAPPER)


def _typed(kind: pa.DataType) -> pa.DataType:
    """Return a type without NULLs of no type: those are of text."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_typed(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_typed(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_typed(kind.value_type)))
    return kind


def _widened(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("an object cannot be bound")
    if isinstance(value, list):
        return [_widened(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        return decimal.Decimal(value)
    return value
