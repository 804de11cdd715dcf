"""Infinite dates and moments, which drivers send as the ends of the numbers."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.sources import endless_times

_US_TO_2000 = 946_684_800_000_000
_MOST = 2**63 - 1


def moments(*numbers: int | None, zone: str | None = None) -> pa.Array:
    return pa.array(numbers, pa.int64()).view(pa.timestamp("us", zone))


def dates(*numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32()).view(pa.date32())


@pytest.mark.parametrize(
    "values",
    [
        moments(0, _MOST),
        moments(_MOST, zone="UTC"),
        moments(None, -_MOST - 1),
        moments(-_MOST - 1 + _US_TO_2000),
        dates(2**31 - 1),
        dates(0, -(2**31) + 10_957),
        dates(-(2**31)),
    ],
)
def test_ends_are_infinite(values: pa.Array) -> None:
    assert endless_times.has_endless(values)


@pytest.mark.parametrize(
    "values",
    [
        moments(),
        moments(None, None),
        moments(0, _MOST - 1, -_MOST + _US_TO_2000),
        dates(),
        dates(2**31 - 2, -(2**31) + 10_958),
        pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)], pa.timestamp("us")),
        pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        pa.array([_MOST], pa.int64()),
        pa.array(["infinity"]),
    ],
)
def test_other_values_are_not(values: Any) -> None:
    assert not endless_times.has_endless(values)


def test_a_slice_is_looked_at_alone() -> None:
    values = moments(_MOST, 0, 1)
    assert endless_times.has_endless(values)
    assert not endless_times.has_endless(values.slice(1))
