"""Correlated subqueries with windows, grouping sets and HAVING: right as in DuckDB, or refused."""

import asyncio
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_engine.known_faults import pulled_up
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import duckdb_over, rows_of, session_over
from tests.kit import generating

TABLES = {
    "t": pa.table({"k": pa.array([1, 2, 2, None, 3], pa.int64()), "v": [1, 2, 3, 4, 2]}),
    "u": pa.table({"k": pa.array([1, 2, 2, 2, None, 4], pa.int64()), "w": [1, 2, 3, 2, 5, 6]}),
}
_COMPARISONS = ("u.k = t.k", "t.k = u.k AND w > 1", "u.k = t.k AND w = v", "w > 2", "u.k >= t.k")
_SELECTED = (
    "w", "count(*)", "max(w)", "count(*) OVER ()", "sum(w) OVER (PARTITION BY u.k)",
    "row_number() OVER (PARTITION BY k ORDER BY w)", "count(*) OVER (PARTITION BY u.k, w)",
    "rank() OVER (ORDER BY w)",
)  # fmt: skip
_AFTER = (
    "", "", "GROUP BY w", "GROUP BY ROLLUP (w)", "GROUP BY CUBE (w, k)", "HAVING count(*) > 1",
    "GROUP BY GROUPING SETS ((w), ())", "GROUP BY w HAVING count(*) > 1",
    "QUALIFY row_number() OVER (ORDER BY w) = 2",
    "QUALIFY count(*) OVER (PARTITION BY u.k) > 1",
)  # fmt: skip
_PLACES = (
    "SELECT v FROM t WHERE EXISTS ({})",
    "SELECT v FROM t WHERE NOT EXISTS ({})",
    "SELECT v FROM t WHERE v IN ({})",
    "SELECT v FROM t WHERE v > ALL ({})",
    "SELECT v FROM t WHERE v <= ANY ({})",
    "SELECT v, x FROM t, LATERAL ({}) AS q(x)",
    "SELECT v, x FROM t LEFT JOIN LATERAL ({}) AS q(x) ON true",
)


@st.composite
def statements(draw: DrawFn) -> str:
    selected, after = draw(st.sampled_from(_SELECTED)), draw(st.sampled_from(_AFTER))
    where = draw(st.sampled_from(_COMPARISONS))
    inner = f"SELECT {selected} FROM u WHERE {where} {after}"
    if draw(st.booleans()):
        inner = f"SELECT x FROM ({inner}) AS z(x)"
    return draw(st.sampled_from(_PLACES)).format(inner)


@pytest.fixture(scope="module")
def of() -> Session:
    return session_over(TABLES, {})


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over(TABLES)


def test_generated_subqueries_are_right_or_refused(
    of: Session, duck: duckdb.DuckDBPyConnection
) -> None:
    answered = 0

    def check(sql: str) -> None:
        nonlocal answered
        try:
            right = duck.sql(sql).fetchall()
        except duckdb.Error:
            return
        try:
            found = asyncio.run(rows_of(of, sql))
        except QueryError as error:
            assert isinstance(error, InvalidQueryError), sql
            return
        answered += 1
        assert sorted(map(str, found)) == sorted(map(str, right)), sql

    generating.check_same(statements(), 400, check)
    assert answered > 40


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT v FROM t WHERE EXISTS (SELECT row_number() OVER () FROM u WHERE u.k = t.k)",
         [(1,), (2,), (3,)]),
        ("SELECT v, n FROM t, LATERAL (SELECT DISTINCT sum(w) OVER (PARTITION BY u.k) AS n "
         "FROM u WHERE u.k = t.k) q", [(1, 1), (2, 7), (3, 7)]),
        ("SELECT v FROM t WHERE v IN (SELECT w FROM u GROUP BY ROLLUP (w))",
         [(1,), (2,), (3,), (2,)]),
        ("SELECT v FROM t WHERE EXISTS (SELECT 1 FROM (SELECT w, count(*) AS n FROM u GROUP BY "
         "CUBE (w)) q WHERE q.w = t.v AND n > 1)", [(2,), (2,)]),
        ("SELECT v, n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k "
         "HAVING count(*) > 1) q ON true", [(1, None), (2, 3), (3, 3), (4, None), (2, None)]),
        ("SELECT v FROM t WHERE 3 = ANY (SELECT count(*) FROM u WHERE u.k = t.k "
         "HAVING count(*) > 1)", [(2,), (3,)]),
        ("SELECT v FROM t WHERE v > ALL (SELECT count(*) FROM u WHERE u.k = t.k "
         "HAVING count(*) > 1)", [(1,), (4,), (2,)]),
    ],
)  # fmt: skip
def test_what_the_engine_answers_rightly_is_answered(
    of: Session, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert sorted(map(str, asyncio.run(rows_of(of, sql)))) == sorted(map(str, rows))


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("select k, sum(v) from t group by rollup (k)", False),
        ("select * from (select k from t group by cube (k)) q", True),
        ("select * from t, lateral (select 1) q", False),
        ("select 1 from t where k in (select k from u)", False),
    ],
)
def test_most_statements_are_not_parsed_for_it(words: str, is_so: bool) -> None:
    assert pulled_up.may_apply(words) is is_so
