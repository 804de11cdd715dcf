"""Casts of one column are columns of their own."""

from itertools import permutations

import duckdb
import pytest

from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked, check_same, duckdb_over, session_over

FORMS = ("k", "CAST(k AS DOUBLE)", "k::TEXT", "TRY_CAST(k AS INT)", "CAST(k::TEXT AS INT)")
SHAPES = (
    "SELECT {0} AS a, {1} AS b FROM t",
    "SELECT {0}, {1}, v FROM t",
    "SELECT max({0}) AS a, max({1}) AS b FROM t",
    "SELECT count(DISTINCT {0}), count(DISTINCT {1}) FROM t",
    "SELECT {0} AS a, count(*) AS n FROM t GROUP BY {0}, {1} HAVING max({1}) IS NOT NULL",
    "SELECT {0} AS a, {1} AS b, count(*) FROM t GROUP BY 1, 2",
    "SELECT a, b, sum(v) FROM (SELECT {0} AS a, {1} AS b, v FROM t) q GROUP BY ROLLUP (a, b)",
    "SELECT sum(v) OVER (PARTITION BY {0}) AS a, sum(v) OVER (PARTITION BY {1}) AS b FROM t",
    "SELECT min({0}) OVER () AS a, min({1}) OVER () AS b FROM t WHERE {0} IS NOT NULL",
    "SELECT * FROM (SELECT DISTINCT {0}, {1} FROM t) q",
    "SELECT max({0}) AS a FROM t GROUP BY v HAVING min({1}) IS NOT NULL ORDER BY max({1}), a",
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"t": tables.tables()["t"]})


@pytest.fixture(scope="module")
def made() -> Session:
    return session_over({"t": tables.tables()["t"]}, {})


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_of_casts(made: Session, duck: duckdb.DuckDBPyConnection, shape: str) -> None:
    for pair in permutations(FORMS, 2):
        sql = shape.format(*pair)
        check_same(made, duck, sql)


def test_names_say_what_is_cast(asked: Asked) -> None:
    sql = asked.text("SELECT k, CAST(k AS TEXT), sum(k::INT) OVER () FROM t")
    names = asked.context.sql(sql).schema().names
    assert names == ["k", "CAST(k AS TEXT)", "sum(k::INT) OVER ()"]


def test_names_that_are_no_casts_stay_an_error(asked: Asked) -> None:
    with pytest.raises(Exception, match="unique expression names"):
        asked.text("SELECT k, k FROM t")


def test_statements_without_the_error_stay(asked: Asked) -> None:
    sql = "SELECT CAST(k AS TEXT), v FROM t"
    assert asked.text(sql) == sql
