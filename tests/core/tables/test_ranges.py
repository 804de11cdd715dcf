from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.tables import ranges


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (Decimal("2.50"), 2.5),
        (date(1970, 1, 11), 10.0),
        (datetime(1970, 1, 2, 12, tzinfo=UTC), 1.5),
        (datetime(1, 1, 1), -719_162.0),
        (True, None),
        ("3", None),
        (None, None),
    ],
)
def test_numbers_order_like_their_values(value: object, number: float | None) -> None:
    assert ranges.number_of(value) == number


@given(st.datetimes(), st.datetimes())
def test_all_moments_have_a_number(one: datetime, other: datetime) -> None:
    numbers = ranges.range_of(one, other)
    assert numbers is not None
    assert one >= other or numbers[0] <= numbers[1]
    assert ranges.range_of(one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)) == numbers


@given(st.dates())
def test_all_days_have_a_number(day: date) -> None:
    assert ranges.number_of(day) == day.toordinal() - date(1970, 1, 1).toordinal()


def test_range_needs_both_ends() -> None:
    assert ranges.range_of(1, Decimal(4)) == (1.0, 4.0)
    assert ranges.range_of(1, None) is None
    assert ranges.range_of("a", "b") is None


def test_parts_of_a_table_have_one_range_together() -> None:
    parts = [{"a": (1.0, 2.0)}, {"a": (-1.0, 1.5), "b": (0.0, 0.0)}, {}]
    assert ranges.together(parts) == {"a": (-1.0, 2.0), "b": (0.0, 0.0)}
