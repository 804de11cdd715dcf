"""Bounds the exact numbers of an expression by its form and type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree

_COUNTED = frozenset(
    {"count", "row_number", "rank", "dense_rank", "ntile", "length", "char_length",
     "character_length", "octet_length", "bit_length", "strpos", "date_part", "array_length",
     "cardinality", "levenshtein", "ascii", "approx_distinct", "regr_count", "position", "instr"}
)  # fmt: skip
_MOST_COUNTED = 2**40
"""No count of rows or characters exceeds this."""


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `least` to `most`."""

    least: int
    most: int

    def fits(self, other: "Range") -> bool:
        """Return whether the range is inside another one."""
        return other.least <= self.least and self.most <= other.most

    @property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(abs(self.least), abs(self.most))


def of_type(type_: pa.DataType | None) -> Range | None:
    """Return the range of an integer or decimal type, or None for other types."""
    if type_ is not None and pa.types.is_decimal128(type_):
        return Range(
            -(10 ** (type_.precision - type_.scale)), 10 ** (type_.precision - type_.scale)
        )
    if type_ is None or not pa.types.is_integer(type_):
        return None
    if pa.types.is_unsigned_integer(type_):
        return Range(0, 2**type_.bit_width - 1)
    return Range(-(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1)


_COMBINED: Mapping[str, Callable[[int, int], int]] = {
    "Plus": int.__add__,
    "Minus": int.__sub__,
    "Multiply": int.__mul__,
}


def combined(op: str, left: Range, right: Range) -> Range:
    """Return the range of a sum, a difference or a product."""
    ends = [
        _COMBINED[op](one, other)
        for one in (left.least, left.most)
        for other in (right.least, right.most)
    ]
    return Range(min(ends), max(ends))


def of(expression: Tree, type_: Callable[[Tree], pa.DataType | None]) -> Range | None:
    """Return the range of an expression, or None if it is not an exact number."""
    inner = syntax.unnested(expression)
    value = syntax.number(inner)
    if value is not None:
        return Range(value, value)
    whole = of_type(type_(inner) or type_(expression))
    if whole is None:
        return None
    narrow = _narrow(inner, type_)
    return narrow if narrow is not None and narrow.fits(whole) else whole


def _narrow(expression: Tree, type_: Callable[[Tree], pa.DataType | None]) -> Range | None:
    if syntax.function_name(expression) in _COUNTED:
        return Range(0, _MOST_COUNTED)
    if syntax.kind(expression) == "Extract":
        return Range(-_MOST_COUNTED, _MOST_COUNTED)
    if syntax.kind(expression) != "BinaryOp":
        return None
    operation = expression["BinaryOp"]
    right = of(operation["right"], type_)
    if operation["op"] == "Modulo" and right is not None and right.magnitude:
        return Range(-right.magnitude, right.magnitude)
    left = of(operation["left"], type_)
    if operation["op"] not in _COMBINED or left is None or right is None:
        return None
    return combined(operation["op"], left, right)
