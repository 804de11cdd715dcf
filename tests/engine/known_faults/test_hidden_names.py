"""Columns of one name are no error where nobody sees their names."""

import asyncio
from itertools import product

import duckdb
import pytest

from caraway_engine.known_faults import hidden_names
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked
from tests.kit.engine import memory, rows, session

PAIRS = ("k, k", "k, t.k", "1, 1", "v + k, v + k", "max(v), max(v)", "k, CAST(k AS BIGINT)")
SHAPES = (
    "SELECT 1 AS a, 2 AS b UNION ALL SELECT {0} FROM t{1}",
    "SELECT 1 AS a, 2 AS b UNION (SELECT 3, 4 UNION ALL (SELECT {0} FROM t{1}))",
    "SELECT k AS a, v AS b FROM t EXCEPT SELECT {0} FROM t{1}",
    "SELECT k AS a, k AS b FROM t INTERSECT (SELECT {0} FROM t{1})",
    "WITH q(a, b) AS (SELECT {0} FROM t{1}) SELECT x.a, x.b, y.b AS c FROM q AS x "
    "JOIN q AS y ON x.a = y.b",
    "WITH q(a, b) AS (SELECT {0} FROM t{1} UNION ALL SELECT {0} FROM t{1}) SELECT b, a FROM q",
    "SELECT b, a FROM (SELECT {0} FROM t{1}) AS q(a, b) WHERE a > 0",
    "SELECT count(*) AS n FROM u WHERE EXISTS (SELECT {0} FROM t WHERE t.k = u.k{1})",
    "SELECT count(*) AS n FROM u WHERE NOT EXISTS (SELECT {0} FROM t WHERE t.k = u.k{1})",
    "WITH RECURSIVE q(n, a, b) AS (SELECT 0, {0} FROM t{1} UNION ALL SELECT n + 1, q.b, q.b FROM q "
    "WHERE n < 2) SELECT n, a, b FROM q",
    "SELECT a FROM (SELECT {0} FROM t{1} ORDER BY 1, 2 LIMIT 2) AS q(a, b)",
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name in ("t", "u"):
        connection.register(name, tables.tables()[name])
    return connection


@pytest.fixture(scope="module")
def made() -> Session:
    of = {name: tables.tables()[name] for name in ("t", "u")}
    return session(
        {
            name: memory(**{each: table.column(each) for each in table.column_names})
            for name, table in of.items()
        }
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_in_every_place(
    made: Session, duck: duckdb.DuckDBPyConnection, shape: str
) -> None:
    for pair, where in product(PAIRS, ("", "condition")):
        condition = ""
        if where:
            condition = " AND t.v > 0" if "t.k = u.k" in shape else " WHERE t.v > 10"
        sql = shape.format(pair, condition)
        found = [tuple(row.values()) for row in asyncio.run(rows(made, sql))]
        assert sorted(found, key=str) == sorted(duck.sql(sql).fetchall(), key=str), sql


def test_what_users_see_keeps_its_names(asked: Asked) -> None:
    sql = asked.text("SELECT k, v FROM t UNION ALL SELECT w, w FROM u")
    assert asked.context.sql(sql).schema().names == ["k", "v"]


def test_columns_that_users_see_stay_an_error(asked: Asked) -> None:
    for sql in (
        "SELECT k, k FROM t",
        "SELECT * FROM (SELECT k, k FROM t) AS q",
        "SELECT k, k FROM t UNION ALL SELECT 1, 2",
    ):
        with pytest.raises(Exception, match="unique expression names"):
            asked.text(sql)


def test_text_that_is_no_sql_is_left_alone() -> None:
    assert hidden_names.apart("SELECT FROM WHERE") is None
    assert hidden_names.apart("SELECT k, k FROM t") is None
