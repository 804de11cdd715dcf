"""Timestamps are compared with constants of more digits than they have."""

import datetime as dt
from itertools import product

import duckdb
import pyarrow as pa
import pytest

from caraway_engine.known_faults import finer_moments
from tests.engine.known_faults.memory import Asked

MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 58),
    dt.datetime(1970, 1, 1),
    None,
    dt.datetime(2024, 3, 10, 6, 59, 59),
    dt.datetime(2024, 3, 10, 7),
]
ROWS = pa.table({
    "id": pa.array(range(5), pa.int64()),
    **{unit: pa.array(MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
})  # fmt: skip
CONSTANTS = (
    "TIMESTAMP '1970-01-01 00:00:00.5'",
    "'1970-01-01 00:00:00.000001'",
    "CAST('2024-03-10 06:59:59.0001' AS TIMESTAMP)",
    "'2024-03-10T06:59:59.9'::TIMESTAMP",
    "(TIMESTAMP '1969-12-31 23:59:58.250')",
)
CONDITIONS = (
    *(f"{{0}} {sign} {{1}}" for sign in ("<", "<=", ">", ">=", "=", "<>")),
    "{1} >= {0}",
    "{0} IS DISTINCT FROM {1}",
    "{0} IS NOT DISTINCT FROM {1}",
    "{0} IN ({1}, '2024-03-10 07:00:00')",
    "{0} NOT IN ({1})",
    "{0} BETWEEN {1} AND TIMESTAMP '2024-03-10 06:59:59.5'",
    "{0} NOT BETWEEN TIMESTAMP '1969-12-31 23:59:58.25' AND {1}",
    "coalesce({0}, TIMESTAMP '2020-01-01 00:00:00') < {1}",
)


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", ROWS)
    connection.execute("CREATE TABLE x AS FROM given")
    return connection


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_comparison(of: Asked, duck: duckdb.DuckDBPyConnection, unit: str) -> None:
    for condition, constant in product(CONDITIONS, CONSTANTS):
        sql = f"SELECT id FROM x WHERE {condition.format(unit, constant)}"
        # DuckDB compares texts with seconds in seconds.
        exact = constant if "TIMESTAMP" in constant else f"TIMESTAMP {constant}"
        judged = f"SELECT id FROM x WHERE {condition.format(f'{unit}::TIMESTAMP', exact)}"
        assert of.mended(sql) == sorted(duck.sql(judged).fetchall(), key=str), sql


@pytest.mark.parametrize("call", ["max({0} < {1})", "CASE WHEN {0} = {1} THEN 1 END", "{0} > {1}"])
def test_other_places(of: Asked, duck: duckdb.DuckDBPyConnection, call: str) -> None:
    value = call.format("ms", "TIMESTAMP '1970-01-01 00:00:00.0005'")
    sql = f"SELECT {value} AS v FROM x"
    assert of.mended(sql) == sorted(duck.sql(sql).fetchall(), key=str)


def test_a_zone_stays(of: Asked) -> None:
    zoned = "SELECT arrow_cast(ms, 'Timestamp(Millisecond, Some(\"+02:00\"))') AS z, id FROM x"
    of.context.register_view("zoned", of.context.sql(zoned))
    sql = "SELECT id FROM zoned WHERE z = TIMESTAMPTZ '1970-01-01 00:00:00.0001+00'"
    assert of.mended(sql) == []
    assert of.mended(sql.replace(".0001", ".000")) == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM x WHERE ms < TIMESTAMP '1970-01-01 00:00:00.500'",
        "SELECT id FROM x WHERE us < '1970-01-01 00:00:00.000001'",
        "SELECT id FROM x WHERE s < '1970-01-01 00:00:00.000'",
    ],
)
def test_constants_that_are_no_finer_stay(of: Asked, sql: str) -> None:
    assert "nullif" not in of.text(sql)


def test_other_words_need_no_look() -> None:
    assert not finer_moments.may_apply("select '10:00:00', 1.5, '10:00:00.000'")
