"""Filters stay above aggregates that have a row of nothing."""

import asyncio

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import rows_of_nothing
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

T = pa.table({"k": pa.array([1, 2, 2, None], pa.int64()), "v": pa.array([1, 2, 3, 4])})
U = pa.table({"k": pa.array([2, 3], pa.int64()), "w": pa.array([7, 8])})
_TOTALS = "SELECT 't' AS c, 1 AS d, count(*) AS n FROM t"
VIEWS = {
    "total": _TOTALS,
    "totals": f"{_TOTALS} UNION ALL SELECT 'u', 2, sum(w) FROM u WHERE w > 7",
}
_CONSTANTS = st.sampled_from(
    ["'t' AS c, 1 AS d", "'u' AS c, (SELECT max(w) FROM u) AS d", "coalesce('t', 'u') AS c, 2 AS d"]
)
_AGGREGATES = st.sampled_from(
    [
        "count(*)",
        "sum(v)",
        "max(k)",
        "count(DISTINCT k)",
        "bool_or(v > 2)",
        "min(v) FILTER (WHERE v > 9)",
    ]
)
_GROUPINGS = st.sampled_from(["", "", " GROUP BY ROLLUP (k)", " GROUP BY GROUPING SETS ((), (k))",
                              " GROUP BY k", " HAVING count(*) > 1", " LIMIT 1"])  # fmt: skip
_AGGREGATED = st.builds("SELECT {}, {} AS n FROM t{}".format, _CONSTANTS, _AGGREGATES, _GROUPINGS)
_SOURCES = st.one_of(
    st.builds("({}) AS q".format, _AGGREGATED),
    st.builds("(SELECT DISTINCT c, d, n FROM ({}) AS p) AS q".format, _AGGREGATED),
    st.builds(
        f"({_TOTALS} UNION ALL {{}}) AS q".format,
        _AGGREGATED.filter(lambda sql: "(v > 2)" not in sql and "LIMIT" not in sql),
    ),
    st.sampled_from(["total AS q", "totals AS q"]),
)
_CONDITIONS = st.sampled_from(
    ["c = 't'", "c = 'u' AND d = 2", "d IN (2, 3)", "d <> d", "c = 'u' OR d = 9",
     "(SELECT max(k) FROM u) = 4", "NOT EXISTS (SELECT 1 FROM u)", "7 IN (SELECT d FROM totals)"]
)  # fmt: skip
SHAPES = st.sampled_from([
    "SELECT c, d, n FROM {0} WHERE {1}",
    "SELECT c, count(*) AS m FROM {0} WHERE {1} GROUP BY c",
    "SELECT t.v, q.n FROM t LEFT JOIN {0} ON q.c = 'u' AND t.v = 1 WHERE t.v < 3",
    "SELECT t.v, q.n FROM t LEFT JOIN {0} ON 1 = 0",
    "SELECT t.v, q.n FROM t JOIN {0} ON q.c = 'u' AND t.v = q.d",
    "WITH q AS (SELECT * FROM {0}) SELECT c, n, row_number() OVER (ORDER BY c, d, n) AS r FROM q "
    "WHERE {1}",
    "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM {0} WHERE {1})",
    "SELECT v FROM t WHERE 2 NOT IN (SELECT d FROM {0} WHERE {1})",
])  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Session:
    tables = {
        name: memory(**{column: table.column(column) for column in table.column_names})
        for name, table in {"t": T, "u": U}.items()
    }
    return session({**tables, **VIEWS})


@pytest.fixture(scope="module")
def judge() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("t", T)
    connection.register("u", U)
    for name, sql in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    return connection


@settings(max_examples=150)
@given(shape=SHAPES, source=_SOURCES, condition=_CONDITIONS)
def test_filters_stay_above(
    made: Session, judge: duckdb.DuckDBPyConnection, shape: str, source: str, condition: str
) -> None:
    sql = shape.format(source, condition)
    expected = judge.execute(sql).fetchall()
    found = [tuple(each.values()) for each in asyncio.run(rows(made, sql))]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    ("words", "is_view", "may_be"),
    [
        ("select count(*) from t", False, False),
        ("select count(*) from t", True, True),
        ("select n from (select count(*) as n from t) q", False, True),
        ("select k from t where k in (select k from u)", True, False),
    ],
)
def test_most_statements_are_not_walked(words: str, is_view: bool, may_be: bool) -> None:
    assert rows_of_nothing.may_apply(words, is_view=is_view) is may_be


async def test_correlated_subqueries_have_no_limit(made: Session) -> None:
    sql = "SELECT v, (SELECT count(*) FROM u WHERE u.k = t.k) AS n FROM t ORDER BY v"
    assert [each["n"] for each in await rows(made, sql)] == [0, 1, 1, 0]
