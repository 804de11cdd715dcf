"""A TIMESTAMPTZ is the moment that the engine means, with its zone."""

import datetime as dt
from typing import Any

import pytest

from tests.engine.known_faults.memory import Asked

# Each expression, and the moment in UTC.
MOMENTS: dict[str, Any] = {
    "CAST('2024-06-01T10:00:00Z' AS TIMESTAMPTZ)": dt.datetime(2024, 6, 1, 10),
    "CAST('2024-06-01T10:00:00+02:00' AS TIMESTAMP WITH TIME ZONE)": dt.datetime(2024, 6, 1, 8),
    "'2024-06-01T10:00:00'::timestamptz": dt.datetime(2024, 6, 1, 10),
    "TIMESTAMPTZ '2024-06-01T10:00:00-02:00'": dt.datetime(2024, 6, 1, 12),
    "CAST(1700000000 AS TIMESTAMPTZ)": dt.datetime(2023, 11, 14, 22, 13, 20),
    "CAST(id AS TIMESTAMPTZ)": dt.datetime(1970, 1, 1, 0, 0, 1),
    "CAST(-id AS TIMESTAMPTZ)": dt.datetime(1969, 12, 31, 23, 59, 59),
    "CAST(arrow_cast(id * 1000, 'Int32') AS TIMESTAMPTZ)": dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    "TRY_CAST(id * 1000 AS TIMESTAMPTZ)": dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    "TRY_CAST('2024-06-01T10:00:00Z' AS TIMESTAMPTZ)": dt.datetime(2024, 6, 1, 10),
    "TRY_CAST('no moment' AS TIMESTAMPTZ)": None,
    "TRY_CAST('' AS TIMESTAMPTZ)": None,
    "CAST(NULL AS TIMESTAMPTZ)": None,
    "CAST(at AS TIMESTAMPTZ)": dt.datetime(2024, 6, 1, 10),
    "CAST(ny AS TIMESTAMPTZ)": dt.datetime(2024, 6, 1, 10),
    "CAST(CAST('2024-06-01' AS DATE) AS TIMESTAMPTZ)": dt.datetime(2024, 6, 1),
}


@pytest.mark.parametrize("expression", MOMENTS)
def test_a_cast_keeps_its_moment(asked: Asked, expression: str) -> None:
    sql = f"SELECT {expression} AS at FROM moments WHERE id = 1"

    ((found,),) = asked.mended(sql)
    ((engine,),) = asked.engine(sql)

    if MOMENTS[expression] is None:
        assert found is None and engine is None
        return
    assert str(found.tzinfo) == "UTC"
    assert found.replace(tzinfo=None) == MOMENTS[expression] == engine


def test_a_cast_of_something_else_still_fails(asked: Asked) -> None:
    with pytest.raises(Exception, match="timestamp"):
        asked.mended("SELECT CAST('no moment' AS TIMESTAMPTZ)")


def test_a_moment_equals_itself_in_another_zone(asked: Asked) -> None:
    sql = "SELECT id FROM moments WHERE ny::timestamptz = ny AND ny = TRY_CAST(ny AS TIMESTAMPTZ)"

    assert asked.mended(sql) == [(1,), (2,)]
    assert asked.engine(sql) == []
