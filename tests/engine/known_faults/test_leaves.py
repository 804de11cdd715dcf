"""Fields of structs that are read above columns with the names of others: as in DuckDB."""

import asyncio

import duckdb
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_engine.known_faults import leaves
from caraway_engine.sessions.sessions import Session
from caraway_engine.statements import plan_facts
from tests.engine.known_faults.memory import duckdb_over, rows_of, session_over
from tests.kit import generating

_STRUCTS = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": -2, "b": None}, {"a": 1, "b": "y"}]
TABLES = {
    "n": pa.table({"a": [1, 2, None, -3], "s": _STRUCTS}),
    "w": pa.table({"a": [1, 2, None, -3], "b": [10, None, 20, -1], "s": _STRUCTS}),
}
VIEWS = {"v": "SELECT -a AS a, s FROM n WHERE a IS NOT NULL"}
_ITEMS = ("a", "-a AS a", "a * 10 AS a", "s['a'] AS a", "coalesce(a, 7) AS a")
_REST = ("", " WHERE a > 0", " LIMIT 10", " WHERE s['b'] <> 'q'", " WHERE 1 = 2")
_READS = (
    "SELECT a, s['b'] AS x FROM {f} q",
    "SELECT a, s['b'] AS x FROM {f} q WHERE a < 5",
    "SELECT a, s['a'] AS x FROM {f} q WHERE s['a'] > 0",
    "SELECT a, count(s['b']) AS n FROM {f} q GROUP BY a",
    "SELECT s['b'] AS x, sum(a) AS n FROM {f} q GROUP BY s['b']",
    "SELECT q.a, o.a AS c, q.s['b'] AS x FROM {f} q JOIN n o ON q.s['a'] = o.a",
    "SELECT q.a, o.a AS c FROM {f} q LEFT JOIN n o ON q.s['a'] = o.a WHERE q.s['b'] = 'y'",
    "SELECT a, s['b'] AS x FROM {f} q UNION ALL SELECT a, s['b'] AS x FROM {f} q WHERE false",
    "SELECT a, x FROM (SELECT a, s['b'] AS x, row_number() OVER (ORDER BY s['a'], a, s['b']) AS r "
    "FROM {f} q) p WHERE r < 3",
)


@st.composite
def statements(draw: DrawFn) -> str:
    """Draw a statement that reads fields of a struct of a subquery, of another, of a table."""
    table = draw(st.sampled_from(("n", "w", "v")))
    source = table
    for _ in range(draw(st.integers(1, 2))):
        item = draw(st.sampled_from(_ITEMS))
        source = f"(SELECT {item}, s FROM {source} z{draw(st.sampled_from(_REST))})"
    if table == "w" and draw(st.booleans()):
        source = f"(SELECT b AS a, a AS b, s FROM w{draw(st.sampled_from(_REST))})"
    if draw(st.booleans()):
        return f"WITH c AS {source} " + draw(st.sampled_from(_READS)).format(f="c")
    return draw(st.sampled_from(_READS)).format(f=source)


@pytest.fixture(scope="module")
def of() -> Session:
    return session_over(TABLES, VIEWS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over(TABLES, VIEWS)


def test_generated_statements_are_answered_as_by_duckdb(
    of: Session, duck: duckdb.DuckDBPyConnection
) -> None:
    def check(sql: str) -> None:
        found = asyncio.run(rows_of(of, sql))
        assert sorted(map(str, found)) == sorted(map(str, duck.sql(sql).fetchall())), sql

    generating.check_same(statements(), 300, check)


async def test_a_random_field_is_computed_once(of: Session) -> None:
    sql = (
        "SELECT bool_and(s['r'] = f) FROM (SELECT s, s['r'] AS f FROM (SELECT named_struct('r', "
        "random()) AS s FROM n) i) o"
    )
    assert await rows_of(of, sql) == [(True,)]


@pytest.fixture(scope="module")
def context() -> SessionContext:
    made = SessionContext()
    for name, rows in TABLES.items():
        made.from_arrow(rows, name)
    return made


@pytest.mark.parametrize(
    ("sql", "is_off"),
    [
        ("SELECT a, s['b'] FROM n WHERE s['a'] > 0", False),
        ("SELECT -a AS a FROM n WHERE a > 0", False),
        ("SELECT a, s['b'] FROM (SELECT n.a AS a, n.s FROM n) q", False),
        ("SELECT c, s['b'] FROM (SELECT -a AS c, s FROM n) q", False),
        ("SELECT s['b'] FROM n UNION ALL SELECT s['b'] FROM w WHERE a > 0", False),
        ("SELECT s['b'] FROM n UNION ALL SELECT s['b'] FROM w WHERE 1 = 2", True),
        ("SELECT a, s['b'] FROM (SELECT -a AS a, s FROM n) q", True),
        ("SELECT a, s['b'] FROM (SELECT b AS a, s FROM w) q", True),
        ("SELECT s['b'], random() FROM n", True),
    ],
)
def test_fields_are_read_early_where_names_are_clear(
    context: SessionContext, sql: str, is_off: bool
) -> None:
    plan = context.sql(sql).logical_plan()
    assert bool(leaves.forbidden(context, plan, plan_facts.of(plan))) is is_off


def test_the_engine_still_takes_the_other_column(context: SessionContext) -> None:
    """If this fails, the engine was mended, and `leaves` may go."""
    sql = "SELECT a, s['b'] AS x FROM (SELECT -a AS a, s FROM n WHERE a > 1) q"
    assert context.sql(sql).to_pydict() == {"a": [2], "x": ["y"]}
