"""Windows sort by values of every type, without a frame and with frames that name no offset."""

from itertools import product

import duckdb
import pyarrow as pa
import pytest

from tests.engine.known_faults.memory import Asked, duckdb_over

ROWS = pa.table({
    "id": pa.array(range(8), pa.int64()),
    "p": pa.array([1, 1, 2, 2, 1, None, 2, 1], pa.int64()),
    "o": pa.array([3, 1, None, 1, 3, 2, 2, None], pa.int64()),
    "tod": pa.array([3, 1, None, 1, 3, 2, 2, None], pa.time64("us")),
    "day": pa.array([3, 1, None, 1, 3, 2, 2, None], pa.timestamp("us")),
})  # fmt: skip
KEYS = (
    "tod", "CAST(tod AS TEXT)::BYTEA", "day - TIMESTAMP '1970-01-01'", "{x: tod}", "{x: o, y: id}",
    "{x: {y: o}}",
)  # fmt: skip
FRAMES = (
    "", "RANGE UNBOUNDED PRECEDING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
)  # fmt: skip
CALLS = ("rank()", "count(*)", "sum(o)", "percent_rank()", "max(id)")
SHAPES = (
    "SELECT id, {call} OVER (PARTITION BY p ORDER BY {key} {direction} {frame}) FROM x",
    "SELECT id, {call} OVER w FROM x WINDOW w AS (ORDER BY {key} {direction}, p {frame})",
    "SELECT x.id, {call} OVER (ORDER BY {key} {direction} {frame}) FROM x LEFT JOIN "
    "(SELECT 1 AS one) y ON x.id = y.one",
)


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"x": ROWS})


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_every_type(of: Asked, duck: duckdb.DuckDBPyConnection, key: str) -> None:
    directions = ("ASC NULLS LAST", "DESC NULLS FIRST")
    for shape, call, frame, direction in product(SHAPES, CALLS, FRAMES, directions):
        # NULLs in structs sort in other ways.
        if key.startswith("{") and "NULLS FIRST" in direction:
            continue
        sql = shape.format(key=key, call=call, frame=frame, direction=direction)
        assert of.mended(sql) == sorted(duck.sql(sql).fetchall(), key=str), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT rank() OVER (ORDER BY o) FROM x",
        "SELECT sum(o) OVER (ORDER BY o RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM x",
        "SELECT count(*) OVER (PARTITION BY tod) FROM x",
        "SELECT sum(o) OVER (ORDER BY tod ROWS 1 PRECEDING) FROM x",
    ],
)
def test_other_windows_stay(of: Asked, sql: str) -> None:
    assert "GROUPS" not in of.text(sql)


def test_an_offset_from_a_time_of_day_stays_an_error(of: Asked) -> None:
    frame = "RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW"
    with pytest.raises(Exception, match="range queries"):
        of.mended(f"SELECT count(*) OVER (ORDER BY tod {frame}) FROM x")
