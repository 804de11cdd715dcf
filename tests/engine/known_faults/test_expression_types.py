"""Types of CASE and set operations are those that the engine uses in the end."""

import asyncio
from itertools import product

import duckdb
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import check_same, session_over
from tests.kit.engine import rows

MIXED = (
    "CASE WHEN a > 1 THEN a ELSE 3000000000 END",
    "CASE a WHEN 1 THEN a WHEN 2 THEN CAST(4000000000 AS BIGINT) END",
    "CASE WHEN a > 1 THEN a ELSE d END",
    "CASE WHEN a > 1 THEN NULL WHEN a > 0 THEN a ELSE 5000000000 END",
)
COMPUTED = ("-({0})", "({0}) + a", "({0}) * 2", "abs({0}) - 1", "coalesce({0}, 0) + ({0})")
SHAPES = (
    "SELECT {0} AS x FROM t",
    "SELECT sum({0}) AS x FROM t",
    "SELECT max({0}) AS x, count(*) AS n FROM t GROUP BY a",
    "SELECT a FROM t WHERE {0} > 2999999999",
)
UNIONS = (
    "SELECT {0} AS y FROM (SELECT a FROM t UNION ALL SELECT 3000000000) AS q(a)",
    "SELECT {0} AS y FROM (SELECT a FROM t UNION SELECT d FROM t) AS q(a)",
    "WITH q AS (SELECT a FROM t EXCEPT SELECT 5000000000) SELECT {0} AS y FROM q",
)
VIEWS = {
    "v": "SELECT CASE WHEN a > 1 THEN a ELSE 3000000000 END AS a FROM t",
    "w": "SELECT a FROM t UNION ALL SELECT 3000000000",
}
TOO_LARGE = (
    "SELECT (CASE WHEN a > 1 THEN a ELSE 9223372036854775807 END) + 1 AS x FROM t",
    "SELECT -(CASE WHEN a > 1 THEN a ELSE -9223372036854775807 - 1 END) AS x FROM t",
    "SELECT x + x AS y FROM (SELECT a AS x FROM t UNION ALL SELECT 9000000000000000000) AS q",
    "SELECT (CASE WHEN a > 1 THEN CAST(2147483647 AS INT) ELSE a END) + a AS x FROM t",
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t (a INT, d DECIMAL(9, 2))")
    connection.execute("INSERT INTO t VALUES (1, 1.5), (2, 2.25), (3, NULL), (NULL, 4)")
    for name, sql in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    return connection


@pytest.fixture(scope="module")
def made(duck: duckdb.DuckDBPyConnection) -> Session:
    return session_over({"t": duck.sql("FROM t").to_arrow_table()}, VIEWS)


@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic_of_case(made: Session, duck: duckdb.DuckDBPyConnection, shape: str) -> None:
    for mixed, computed in product(MIXED, COMPUTED):
        check_same(made, duck, shape.format(computed.format(mixed)))


@pytest.mark.parametrize("shape", UNIONS)
def test_arithmetic_over_sets(made: Session, duck: duckdb.DuckDBPyConnection, shape: str) -> None:
    for computed in COMPUTED:
        check_same(made, duck, shape.format(computed.format("a")))


@pytest.mark.parametrize("view", VIEWS)
def test_arithmetic_over_views(made: Session, duck: duckdb.DuckDBPyConnection, view: str) -> None:
    for computed in COMPUTED:
        check_same(made, duck, f"SELECT {computed.format('a')} AS y FROM {view}")


@pytest.mark.parametrize("sql", TOO_LARGE)
def test_what_does_not_fit_the_type_is_an_error(made: Session, sql: str) -> None:
    with pytest.raises(InvalidQueryError, match="overflow"):
        asyncio.run(rows(made, sql))
