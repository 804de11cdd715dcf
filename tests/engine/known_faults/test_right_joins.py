"""RIGHT joins with more than equal columns in ON, and filters above them."""

import asyncio

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_core.errors import QueryError
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import Asked, duckdb_over, rows_of, session_over
from tests.kit import generating

TABLES = {
    "t": pa.table({
        "k": pa.array([1, 2, 2, None, 3, 5], pa.int64()),
        "v": pa.array([10, 20, 30, 40, 50, None], pa.int64()),
        "s": ["a", "b", None, "d", "e", "f"],
    }),
    "u": pa.table({
        "k": pa.array([1, 2, 2, None, 4], pa.int64()),
        "v": pa.array([10, 5, 35, 40, 7], pa.int64()),
        "s": ["b", "a", "c", "d", None],
    }),
}  # fmt: skip
VIEWS = {"w": "SELECT a.k, c.v, a.s FROM t a RIGHT JOIN u c ON a.k = c.k AND a.v < c.v"}


@pytest.fixture(scope="module")
def of() -> Session:
    return session_over(TABLES, VIEWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over(TABLES, VIEWS)


@st.composite
def statements(draw: DrawFn) -> str:
    """Draw a statement over two or three relations with equal column names."""
    count = draw(st.sampled_from((2, 2, 3)))
    names = [f"x{number}" for number in range(count)]
    from_ = f"{draw(st.sampled_from(('t', 'u', 'w')))} x0"
    for number in range(1, count):
        join = draw(st.sampled_from(("RIGHT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "LEFT JOIN")))
        other = names[draw(st.integers(0, number - 1))]
        table = draw(st.sampled_from(("t", "u", "(SELECT k, v + 1 AS v, s FROM t)")))
        on = f"x{number}.k = {other}.k"
        for more in draw(st.lists(st.sampled_from(_CONDITIONS), max_size=2, unique=True)):
            on += f" AND {more.format(a=other, b=names[number])}"
        from_ += f" {join} {table} x{number} ON {on}"
    one, other = draw(st.permutations(names))[:2]
    tests = draw(st.lists(st.sampled_from(_TESTS), max_size=2, unique=True))
    where = " AND ".join(each.format(a=one, b=other) for each in tests)
    rest = f"FROM {from_}" + (f" WHERE {where}" if where else "")
    columns = draw(st.lists(st.sampled_from(_COLUMNS), min_size=1, max_size=3, unique=True))
    items = ", ".join(
        f"{each.format(a=one, b=other)} AS c{number}" for number, each in enumerate(columns)
    )
    shape = draw(st.sampled_from(("{i}", "*", "x0.*, x1.k AS z", "count(*) AS n", "nested")))
    if shape == "nested":
        inner = f"SELECT {items} {rest}"
        return f"SELECT c0, count(*) AS n FROM ({inner}) q WHERE c0 IS NOT NULL GROUP BY c0"
    return f"SELECT {shape.format(i=items)} {rest}"


_CONDITIONS = (
    "{a}.v < {b}.v", "({a}.v IS NOT DISTINCT FROM {b}.v)", "{a}.s <> {b}.s", "{a}.v > 15",
    "{b}.v > 15", "{a}.v + {b}.v > 20", "{a}.s = {b}.s",
)  # fmt: skip
_TESTS = (
    "{a}.k IS NULL", "CASE WHEN {a}.k IS NULL THEN 1 ELSE 0 END = 1", "coalesce({a}.v, 25) > 20",
    "{b}.k > 1", "CASE WHEN {a}.s > 'a' THEN {b}.s ELSE {a}.s END IS NOT NULL",
)  # fmt: skip
_COLUMNS = ("{a}.k", "{b}.k", "{a}.v", "{b}.s", "{a}.k + {b}.k")


def test_generated_joins_are_answered_as_by_duckdb(
    of: Session, duck: duckdb.DuckDBPyConnection
) -> None:
    refused: list[str] = []

    def check(sql: str) -> None:
        try:
            found = asyncio.run(rows_of(of, sql))
        except QueryError as exc:
            assert "swap its two sides" in exc.message, (sql, exc.message)
            refused.append(sql)
            return
        assert sorted(map(repr, found)) == sorted(map(repr, duck.sql(sql).fetchall())), sql

    generating.check_same(statements(), 120, check)
    assert len(refused) <= 5, refused


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k AS x, c.k AS y FROM t a RIGHT JOIN t c ON a.k = c.k "
        "AND (a.s IS NOT DISTINCT FROM c.s) WHERE CASE WHEN a.v > 20 THEN true ELSE false END",
        "SELECT a.v AS x, c.v AS y FROM t a RIGHT JOIN t c ON a.k = c.k AND a.s <= c.s "
        "WHERE coalesce(a.v, 5) > 3",
        "SELECT c.k AS x, c.v AS y, d.k AS z FROM t a RIGHT JOIN u c ON a.k = c.k "
        "JOIN t d ON d.k = c.k AND d.v > c.v WHERE a.k IS NULL OR a.v > 5",
        "SELECT q.*, d.v AS z FROM (SELECT a.k, c.k AS y, c.v FROM t a RIGHT JOIN u c "
        "ON a.k = c.k) q JOIN t d ON d.k = q.y AND d.v > q.v WHERE q.k IS NULL OR q.v < 9",
        "SELECT c.k AS x, d.s AS z FROM t a RIGHT JOIN u c ON a.k = c.k "
        "LEFT JOIN t d ON d.k = c.k AND d.v < c.v WHERE a.k IS NULL OR c.v > 5",
        "SELECT a.k AS x, c.k AS y FROM t a FULL JOIN t c ON a.k = c.k AND a.s < c.s "
        "WHERE c.k > 1 AND coalesce(a.v, 50) > 25",
    ],
)
async def test_conditions_of_joins_keep_their_columns(
    of: Session, duck: duckdb.DuckDBPyConnection, sql: str
) -> None:
    found = await rows_of(of, sql)
    assert sorted(map(repr, found)) == sorted(map(repr, duck.sql(sql).fetchall()))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT * FROM t AS a RIGHT JOIN u AS c ON a.k = c.k AND a.v < c.w",
            'SELECT "a"."k", "a"."v", "c"."k", "c"."w" FROM u AS c '
            "LEFT JOIN t AS a ON a.k = c.k AND a.v < c.w",
        ),
        (
            "SELECT a.* FROM t AS a JOIN one AS b ON a.k = b.k "
            "RIGHT OUTER JOIN u AS c ON a.k = c.k AND b.k < c.w",
            "SELECT a.* FROM u AS c LEFT OUTER JOIN (t AS a JOIN one AS b ON a.k = b.k) "
            "ON a.k = c.k AND b.k < c.w",
        ),
    ],
)
def test_sides_are_swapped(asked: Asked, sql: str, text: str) -> None:
    assert asked.text(sql) == text
    assert asked.mended(sql) == asked.engine(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k FROM t AS a RIGHT JOIN u AS c ON a.k = c.k",
        "SELECT a.v FROM t AS a RIGHT JOIN u AS c USING (k)",
        "SELECT a.k FROM t AS a LEFT JOIN u AS c ON a.k = c.k AND a.v < c.w",
        "SELECT a.k FROM t AS a FULL JOIN u AS c ON a.k = c.k AND a.v < c.w",
    ],
)
def test_other_joins_stay(asked: Asked, sql: str) -> None:
    assert asked.text(sql) == sql
