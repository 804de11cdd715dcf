"""Compares the rows of two statements, whatever their columns are called."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def is_same(given: Rows, right: Rows, *, has_order: bool) -> bool:
    """Return whether rows are the right ones.

    Columns may be in another order, and there may be more of them than the right rows have.
    """
    if len(given) != len(right):
        return False
    if not right:
        return True
    width = len(right[0])
    columns = [_column(given, name) for name in given[0]]
    wanted = [_column(right, name) for name in right[0]]
    if len(columns) < width:
        return False
    return any(
        _are_same([columns[each] for each in chosen], wanted, has_order)
        for chosen in _choices(len(columns), width)
    )


def _choices(count: int, width: int) -> Sequence[tuple[int, ...]]:
    import itertools

    return list(itertools.permutations(range(count), width))[:5_000]


def _column(rows: Rows, name: str) -> list[Any]:
    return [_plain(row[name]) for row in rows]


def _are_same(left: list[list[Any]], right: list[list[Any]], has_order: bool) -> bool:
    first, second = list(zip(*left, strict=True)), list(zip(*right, strict=True))
    if not has_order:
        first, second = sorted(first, key=repr), sorted(second, key=repr)
    return all(
        _equal(a, b)
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def _plain(value: Any) -> Any:
    """Return numbers as floats, and moments without a time that is zero."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return round(float(value), 2)
    text = str(value)
    try:
        return round(float(text), 2)
    except ValueError:
        return text.removesuffix("T00:00:00")


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-4, abs_tol=0.02)
    return bool(left == right)
