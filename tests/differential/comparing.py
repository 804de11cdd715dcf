"""Compares two answers, and reports their first difference."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from caraway_core.errors import QueryError
from tests.differential import rows
from tests.differential.rows import Row

Outcome: TypeAlias = pa.Table | QueryError

_MOST_SHOWN = 5
_LARGEST_MATCHING = 500


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows that a statement guarantees.

    - `total`: every row has a fixed position.
    - `keys`: the columns at `places` are sorted, and rows with equal keys have any order.
    - `none`: any order.

    `whole` is the answer without LIMIT of a statement that keeps some of several equal rows. Then
    the number of rows must be equal, the keys sorted, and each row part of the whole.
    """

    kind: Literal["none", "total", "keys"] = "none"
    places: tuple[int, ...] = ()
    whole: pa.Table | None = None


ANY_ORDER = Order()
TOTAL = Order("total")


def difference(expected: Outcome, actual: Outcome, order: Order = ANY_ORDER) -> str | None:
    """Return how the answers differ, or None."""
    if isinstance(expected, QueryError) or isinstance(actual, QueryError):
        return _of_errors(expected, actual)
    return _of_schemas(expected.schema, actual.schema) or _of_rows(expected, actual, order)


def _of_errors(expected: Outcome, actual: Outcome) -> str | None:
    if type(expected) is type(actual):
        return None
    return f"expected {_worded(expected)}, got {_worded(actual)}"


def _worded(outcome: Outcome) -> str:
    if isinstance(outcome, QueryError):
        return f"{type(outcome).__name__}: {outcome.message}"
    return f"{outcome.num_rows} rows"


def _of_schemas(expected: pa.Schema, actual: pa.Schema) -> str | None:
    if expected.names != actual.names:
        return f"columns: expected {expected.names}, got {actual.names}"
    for wanted, found in zip(expected, actual, strict=True):
        if _type_text(wanted.type) != _type_text(found.type):
            return f"column '{wanted.name}': expected {wanted.type}, got {found.type}"
    return None


def _type_text(type_: pa.DataType) -> str:
    """Nullability is a hint for the planner and not part of an answer."""
    return str(type_).replace(" not null", "")


def _of_rows(expected: pa.Table, actual: pa.Table, order: Order) -> str | None:
    if expected.num_rows != actual.num_rows:
        return f"expected {expected.num_rows} rows, got {actual.num_rows}" + _unmatched_text(
            rows.of_table(expected), rows.of_table(actual)
        )
    if order.kind == "total":
        return _of_sequences(rows.of_table(expected), rows.of_table(actual))
    if order.kind == "keys":
        wanted, found = (rows.of_columns(each, order.places) for each in (expected, actual))
        if text := _of_sequences(wanted, found):
            return f"by sort keys: {text}"
    if order.whole is not None:
        return _of_members(rows.of_table(order.whole), rows.of_table(actual))
    text = _unmatched_text(rows.of_table(expected), rows.of_table(actual))
    return f"other rows{text}" if text else None


def _of_sequences(expected: Sequence[Row], actual: Sequence[Row]) -> str | None:
    for place, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        if not wanted.is_near(found):
            return f"row {place}: expected {wanted}, got {found}"
    return None


def _of_members(whole: Sequence[Row], actual: Sequence[Row]) -> str | None:
    extra = unmatched(actual, whole)
    return f"rows that are no part of the whole: {extra[:_MOST_SHOWN]}" if extra else None


def _unmatched_text(expected: Sequence[Row], actual: Sequence[Row]) -> str:
    missing, extra = unmatched(expected, actual), unmatched(actual, expected)
    if not missing and not extra:
        return ""
    return f"; missing {missing[:_MOST_SHOWN]}; too many {extra[:_MOST_SHOWN]}"


def unmatched(these: Sequence[Row], those: Sequence[Row]) -> list[Row]:
    """Return the rows of the first list without a partner of their own in the second."""
    partners = _by_exact(those)
    alone: list[Row] = []
    for exact, group in _by_exact(these).items():
        alone += _alone(group, partners.get(exact, []))
    return alone


def _by_exact(all_rows: Sequence[Row]) -> dict[Hashable, list[Row]]:
    groups: dict[Hashable, list[Row]] = defaultdict(list)
    for row in all_rows:
        groups[row.exact].append(row)
    return groups


def _alone(these: list[Row], those: list[Row]) -> list[Row]:
    these, those = (sorted(each, key=_sort_key) for each in (these, those))
    if len(these) == len(those) and all(map(Row.is_near, these, those)):
        return []
    if not these[0].floats:
        return these[len(those) :]
    if max(len(these), len(those)) > _LARGEST_MATCHING:
        return these  # always correct: the caller only needs to know that something differs
    return _after_matching(these, those)


def _sort_key(row: Row) -> tuple[tuple[float, float], ...]:
    """Order by the floats, -0.0 before 0.0."""
    return tuple((each, math.copysign(1, each)) for each in row.floats)


def _after_matching(these: list[Row], those: list[Row]) -> list[Row]:
    """Find a maximum matching, because near floats have no consistent sort order."""
    near = [[n for n, other in enumerate(those) if row.is_near(other)] for row in these]
    taken: dict[int, int] = {}

    def finds(this: int, tried: set[int]) -> bool:
        for other in near[this]:
            if other not in tried:
                tried.add(other)
                if other not in taken or finds(taken[other], tried):
                    taken[other] = this
                    return True
        return False

    return [row for number, row in enumerate(these) if not finds(number, set())]
