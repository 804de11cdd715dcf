"""Parts of grouping sets that begin with parentheses are what they are in DuckDB."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_engine.known_faults import grouping_parts
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import check_same, duckdb_over, session_over
from tests.kit import generating

ROWS = pa.table({
    "a": pa.array([1, 2, 2, None, 3], pa.int64()),
    "b": pa.array([1, 1, 2, 2, None], pa.int64()),
    "s": pa.array([{"x": 1}, {"x": 2}, None, {"x": 1}, {"x": None}]),
})  # fmt: skip
_PARTS = ("(x.s)['x']", "(a) + 1", "((a) + (b)) * 2", "(a)", "b", "coalesce(a, (b))",
          "(CASE WHEN a > 1 THEN (b) END) + 1", "(nullif(s, {x: 2}))['x']")  # fmt: skip


@st.composite
def statements(draw: DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(_PARTS), min_size=1, max_size=3, unique=True))
    word = draw(st.sampled_from(("ROLLUP", "CUBE", "GROUPING SETS")))
    if word == "GROUPING SETS":
        parts.append("(a, b)")
    return f"SELECT count(*) AS n, sum(a) AS v FROM x GROUP BY {word} ({', '.join(parts)})"


@pytest.fixture(scope="module")
def over() -> Session:
    return session_over({"x": ROWS}, {})


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"x": ROWS})


def test_generated_parts(over: Session, duck: duckdb.DuckDBPyConnection) -> None:
    generating.check_same(statements(), 60, lambda sql: check_same(over, duck, sql))


@pytest.mark.full
def test_other_parts(
    over: Session, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    generating.check_others(statements(), 600, lambda sql: check_same(over, duck, sql), request)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("GROUP BY ROLLUP ((t.g)['x'], y)", "GROUP BY ROLLUP (((t.g)['x']), y)"),
        ("CUBE ((a), (b, c), f(x), (d) * (e))", "CUBE ((a), (b, c), f(x), ((d) * (e)))"),
        ("GROUPING SETS (a, (b), f(x), ())", "GROUPING SETS ((a), (b), (f(x)), ())"),
        ("SETS (ROLLUP ((é) + 1), (c)::int)", "SETS (ROLLUP (((é) + 1)), ((c)::int))"),
    ],
)
def test_parts_get_parentheses(sql: str, expected: str) -> None:
    assert grouping_parts.closed(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ') ROLLUP ((a) + 1)' AS x",
        "GROUP BY ROLLUP ((a)",
        "GROUP BY ROLLUP (a, (b)) -- ROLLUP ((a) + 1)",
        "SELECT sets",
    ],
)
def test_other_texts_stay(sql: str) -> None:
    assert grouping_parts.closed(sql) is None
