"""Rows of Arrow tables as values that can be compared exactly, with floats separated."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

types = pa.types

RELATIVE_TOLERANCE = 1e-9
"""The tolerance for sums of doubles, which depend on the order of addition."""
_ABSOLUTE_TOLERANCE = 1e-12
"""The tolerance around zero, for a difference of two such sums."""


@dataclass(frozen=True, slots=True)
class Row:
    """The values that must be equal, and the finite floats that must be near, in order."""

    exact: Hashable
    floats: tuple[float, ...]

    def is_near(self, other: "Row") -> bool:
        """Return whether both have the same values; 0.0 and -0.0 differ, NaN equals NaN."""
        return self.exact == other.exact and all(map(_near, self.floats, other.floats))


def of_table(table: pa.Table) -> list[Row]:
    """Return the rows in their order."""
    columns = [_values(column.combine_chunks()) for column in table.columns]
    if not columns:
        return [Row((), ())] * table.num_rows
    return [_row(cells) for cells in zip(*columns, strict=True)]


def of_columns(table: pa.Table, places: tuple[int, ...]) -> list[Row]:
    """Return the rows of some columns, in their order."""
    chosen = [table.column(place) for place in places]
    return of_table(pa.Table.from_arrays(chosen, [str(place) for place in places]))


def _near(left: float, right: float) -> bool:
    if left == right == 0:
        return math.copysign(1, left) == math.copysign(1, right)
    return math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE_TOLERANCE)


def _row(cells: tuple[object, ...]) -> Row:
    floats: list[float] = []
    return Row(tuple(_exact(cell, floats) for cell in cells), tuple(floats))


def _exact(value: object, floats: list[float]) -> Hashable:
    match value:
        case float() if math.isfinite(value):
            floats.append(value)
            return "finite"
        case float():
            return ("not finite", str(value))
        case list() | tuple():
            return (type(value).__name__, *(_exact(each, floats) for each in value))
        case _:
            return value if isinstance(value, Hashable) else repr(value)


def _values(array: pa.Array) -> Iterator[object]:
    """Yield one plain value per row; timestamps are integers, so that nothing is rounded."""
    type_ = array.type
    if types.is_dictionary(type_):
        yield from _values(array.dictionary_decode())
    elif types.is_map(type_) or _is_list(type_):
        yield from _lists(array)
    elif types.is_struct(type_):
        children = [_values(child) for child in array.flatten()]
        cells = zip(*children, strict=True) if children else iter([()] * len(array))
        for is_valid, each in zip(array.is_valid().to_pylist(), cells, strict=True):
            yield each if is_valid else None
    elif types.is_temporal(type_) and not types.is_interval(type_):
        yield from array.cast(pa.int64() if type_.bit_width == 64 else pa.int32()).to_pylist()
    else:
        yield from array.to_pylist()


def _is_list(type_: pa.DataType) -> bool:
    known = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view)
    return any(is_kind(type_) for is_kind in known)


def _lists(array: pa.Array) -> Iterator[object]:
    for scalar in array:
        if not scalar.is_valid:
            yield None
            continue
        items: Any = scalar.values
        yield [] if items is None else list(_values(items))
