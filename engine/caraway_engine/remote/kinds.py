"""Expressions of a database, each with its kind and the facts about its values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.loading.dialects import Kind
from caraway_core.tables import RemoteColumn

types = pa.types
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
MOST_DIGITS = 38


class NotPushableError(Exception):
    """The database is not known to evaluate this part of a statement as the engine does."""


@dataclass(frozen=True, slots=True)
class Term:
    """An SQL expression. For kind "", only whether it is NULL is known.

    A condition that is not exact may also be true for rows that the engine rejects. `digits` are
    the digits before the decimal point of an integer or a decimal, and `scale` those after it. A
    double `is_finite` if it comes from such a number. A value that `is_text` is read as text.
    One that `is_prefiltered` only takes part in conditions, which are not exact. A double that
    `is_single` may have 32 bits. `column` is the
    column of the table that it is, if it is one.
    """

    sql: str
    kind: Kind = ""
    is_exact: bool = True
    digits: int = 0
    scale: int = 0
    is_finite: bool = False
    is_text: bool = False
    is_prefiltered: bool = False
    is_single: bool = False
    is_literal: bool = False
    column: RemoteColumn | None = None


def kind_of(type_: pa.DataType) -> Kind:
    """Return how values of a type compare."""
    for test, kind in _KINDS.items():
        if test(type_):
            return kind
    return ""


def are_comparable(left: Kind, right: Kind) -> bool:
    """Return whether a database compares values of two kinds as the engine does.

    The engine compares an integer without a sign with one that has a sign only if it is a literal.
    """
    return bool(left) and (left == right or {left, right} == {"int", "uint"})


def digits_of(type_: pa.DataType) -> tuple[int, int]:
    """Return the digits before and after the decimal point of an integer or a decimal."""
    if type_ == pa.uint64():
        return 20, 0
    if types.is_decimal128(type_):
        return type_.precision - type_.scale, type_.scale
    return (_INTEGER_DIGITS[type_.bit_width], 0) if types.is_integer(type_) else (0, 0)


_KINDS: Mapping[Callable[[pa.DataType], bool], Kind] = {
    types.is_boolean: "bool",
    types.is_signed_integer: "int",
    types.is_unsigned_integer: "uint",
    types.is_decimal128: "decimal",
    types.is_floating: "double",
    types.is_string: "text",
    types.is_string_view: "text",
    types.is_date32: "date",
    lambda type_: types.is_timestamp(type_) and type_.tz is None: "timestamp",
    lambda type_: types.is_timestamp(type_) and type_.tz is not None: "timestamptz",
}
