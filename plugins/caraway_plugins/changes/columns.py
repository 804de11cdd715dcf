"""Converts the values of one column, from many events, to one Arrow array."""

import decimal
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_plugins.changes import values
from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.values import UnfitError

_NONE = type(None)
_ARROW_REFUSES = (pa.ArrowException, OverflowError, TypeError, ValueError)


class BadValueError(Exception):
    """The value at `index` does not fit its column; `inner` is the path inside a nested value."""

    def __init__(self, index: int, reason: str, inner: str = "") -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason
        self.inner = inner


class ImpreciseError(Exception):
    """A number was read as a double, and may have lost digits that its column keeps."""


def array(
    given: list[Any], type_: pa.DataType, meaning: Meaning = UNKNOWN, is_exact: bool = False
) -> pa.Array:
    """Convert values from JSON or Avro to an array.

    `is_exact` is true if doubles are exact, and false if they may have been decimals.

    Raises:
        BadValueError: a value does not match the type.
        ImpreciseError: a decimal was read as a double, which may have fewer digits than its text.
    """
    kinds = set(map(type, given))
    if kinds <= {_NONE}:
        return pa.nulls(len(given), type_)
    if (nested := _nested(given, type_, meaning, is_exact)) is not None:
        return nested
    kinds.discard(_NONE)
    try:
        if (quick := _quick(given, kinds, type_, meaning)) is not None:
            return quick
    except _ARROW_REFUSES:
        pass  # A value does not fit; the slow path finds which one.
    return _one_by_one(given, type_, meaning, is_exact)


def _quick(
    given: list[object], kinds: set[type], type_: pa.DataType, meaning: Meaning
) -> pa.Array | None:
    """Convert values that Arrow accepts without preparation; return None for others."""
    types = pa.types
    if kinds == {str} and values.is_text(type_):
        return None if values.UNAVAILABLE in given else pa.array(given, type_)
    if kinds == {bool} and types.is_boolean(type_):
        return pa.array(given, type_)
    if kinds == {int} and (types.is_integer(type_) or types.is_decimal(type_)):
        return pa.array(given, type_)
    if kinds <= {int, float} and types.is_float64(type_):
        return pa.array(given, type_)
    if kinds == {decimal.Decimal} and types.is_decimal(type_):
        return pa.array(given, type_)
    if kinds == {int} and types.is_timestamp(type_):
        return _timestamps(given, values.unit_of(type_, meaning), type_)
    if kinds == {str} and types.is_timestamp(type_) and type_.tz is not None:
        return pa.array(given, pa.string()).cast(type_)
    if kinds == {int} and types.is_date32(type_) and not meaning.name.endswith("Timestamp"):
        return pa.array(given, type_)
    return None


def _timestamps(given: list[object], unit: str, type_: pa.DataType) -> pa.Array:
    counted = pa.array(given, pa.int64())
    have, want = values.per_second(unit), values.per_second(type_.unit)
    if have < want:
        counted = pc.multiply_checked(counted, want // have)
    elif have > want:
        # Floor, as for all other values; Arrow's division rounds towards zero.
        by = have // want
        counted = pc.divide(pc.subtract_checked(counted, _rest(counted, by)), by)
    return counted.cast(type_)


def _rest(counted: pa.Array, by: int) -> pa.Array:
    towards_zero = pc.subtract(counted, pc.multiply(pc.divide(counted, by), by))
    return pc.if_else(pc.less(towards_zero, 0), pc.add(towards_zero, by), towards_zero)


def _one_by_one(
    given: Sequence[object], type_: pa.DataType, meaning: Meaning, is_exact: bool
) -> pa.Array:
    read = values.reader(type_, meaning)
    may_lose = not is_exact and (pa.types.is_decimal(type_) or values.is_text(type_))
    found: list[Any] = []
    for index, value in enumerate(given):
        if value is None:
            found.append(None)
            continue
        if may_lose and values.has_doubles(value):
            raise ImpreciseError
        try:
            found.append(read(value))
        except values.UnloggedError as exc:
            raise BadValueError(index, str(exc)) from exc
        except UnfitError as exc:
            raise BadValueError(index, f"{exc}, not {values.kind(value)}") from exc
        except (ArithmeticError, TypeError, ValueError) as exc:
            raise BadValueError(index, f"a value of type {type_} is expected") from exc
    return _made(found, type_)


def _made(found: list[object], type_: pa.DataType) -> pa.Array:
    make = _maker(type_)
    try:
        return make(found)
    except _ARROW_REFUSES:
        pass
    for index, value in enumerate(found):
        try:
            make([value])
        except _ARROW_REFUSES as exc:
            raise BadValueError(index, f"the value does not fit in {type_}") from exc
    raise BadValueError(0, f"the values do not fit in {type_}")


def _maker(type_: pa.DataType) -> Callable[[list[object]], pa.Array]:
    if pa.types.is_decimal(type_):
        # Arrow takes the precision from the first value, and fails at a longer one.
        return lambda found: pa.array(found, pa.decimal256(76, type_.scale)).cast(type_)
    if pa.types.is_floating(type_):
        return lambda found: _floats(found, type_)
    if pa.types.is_date64(type_):
        return lambda found: pa.array(found, pa.date32()).cast(type_)
    return lambda found: pa.array(found, type_)


def _floats(found: list[object], type_: pa.DataType) -> pa.Array:
    wide = pa.array(found, pa.float64())
    narrow = wide.cast(type_)
    if pc.any(pc.and_(pc.is_inf(narrow), pc.is_finite(wide))).as_py():
        raise OverflowError
    return narrow


def _nested(
    given: list[object], type_: pa.DataType, meaning: Meaning, is_exact: bool
) -> pa.Array | None:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _lists(given, type_, meaning, is_exact)
    if pa.types.is_struct(type_):
        return _structs(given, type_, meaning, is_exact)
    return None


def _lists(given: list[object], type_: pa.DataType, meaning: Meaning, is_exact: bool) -> pa.Array:
    offsets: list[int | None] = []
    items: list[object] = []
    owners: list[int] = []
    for index, value in enumerate(given):
        if value is not None and not isinstance(value, list):
            raise BadValueError(index, f"a list is expected, not {values.kind(value)}")
        offsets.append(None if value is None else len(items))
        items += value or ()
        owners += [index] * len(value or ())
    offsets.append(len(items))
    try:
        inner = array(items, type_.value_type, meaning.items or UNKNOWN, is_exact)
    except BadValueError as exc:
        raise BadValueError(owners[exc.index], exc.reason, f"[]{exc.inner}") from exc
    made = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
    width = pa.int64() if pa.types.is_large_list(type_) else pa.int32()
    return made.from_arrays(pa.array(offsets, width), inner, type=type_)


def _structs(given: list[object], type_: pa.DataType, meaning: Meaning, is_exact: bool) -> pa.Array:
    known = {field.name for field in type_}
    for index, value in enumerate(given):
        if value is not None and not isinstance(value, dict):
            raise BadValueError(index, f"an object is expected, not {values.kind(value)}")
        if value is not None and not known.issuperset(value):
            unknown = sorted(set(value) - known)[0]
            raise BadValueError(index, "no such field in the column", f".{unknown:.100}")
    children = [_child(given, field, meaning, is_exact) for field in type_]
    mask = pa.array([value is None for value in given], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _child(given: list[Any], field: pa.Field, meaning: Meaning, is_exact: bool) -> pa.Array:
    inner = [None if value is None else value.get(field.name) for value in given]
    try:
        return array(inner, field.type, meaning.meaning_of(field.name), is_exact)
    except BadValueError as exc:
        raise BadValueError(exc.index, exc.reason, f".{field.name}{exc.inner}") from exc
