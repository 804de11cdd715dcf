"""Types of columns: times and JSON are equal before and after."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from caraway_management.store.types import EPOCH, Json, Moment

DIALECT = sqlite.dialect()


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (EPOCH, 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), 1_709_168_523_000_004),
        (datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000_000),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 253_402_300_799_999_999),
        (None, None),
    ],
)
def test_moments_are_microseconds(moment: datetime | None, number: int | None) -> None:
    assert Moment().process_bind_param(moment, DIALECT) == number
    assert Moment().process_result_value(number, DIALECT) == moment


def test_moments_of_other_zones_are_the_same_moment() -> None:
    local = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert Moment().process_bind_param(local, DIALECT) == Moment().process_bind_param(
        datetime(2024, 1, 1, tzinfo=UTC), DIALECT
    )


def test_moments_without_a_zone_are_refused() -> None:
    with pytest.raises(TypeError):
        Moment().process_bind_param(datetime(2024, 1, 1), DIALECT)


@pytest.mark.parametrize(
    "value", [None, 0, "", "é\0\ud800", [], {}, {"a": [1, None, {"b": 1.5}]}, 2**70, False]
)
def test_json_is_text(value: Any) -> None:
    text = Json().process_bind_param(value, DIALECT)
    assert text is None or text.isascii()
    assert (text is None) == (value is None)
    assert Json().process_result_value(text, DIALECT) == value
