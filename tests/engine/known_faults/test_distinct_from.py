"""AND, OR and NOT around IS DISTINCT FROM have the precedence of SQL."""

import asyncio
from itertools import product

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import distinct_from
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import session_over
from tests.kit.engine import rows

CHOICES = [True, False, None]
ROWS = pa.table(
    dict(zip("pqr", map(list, zip(*product(CHOICES, repeat=3), strict=True)), strict=True)),
    schema=pa.schema([(name, pa.bool_()) for name in "pqr"]),
)
NAMES = st.sampled_from("pqr")
COMPARED = st.builds(
    "{} IS {}DISTINCT FROM {}".format,
    NAMES | st.just("p = q") | st.just("(p AND q)"),
    st.sampled_from(["", "NOT "]),
    NAMES | st.just("(q OR r)") | st.just("(NOT q)") | st.just("true"),
)
TERMS = st.builds("{}{}".format, st.sampled_from(["", "", "NOT "]), NAMES | COMPARED)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    terms = draw(st.lists(TERMS, min_size=2, max_size=5))
    pieces = [terms[0]]
    for term in terms[1:]:
        is_nested = draw(st.integers(0, 5)) == 0
        pieces += draw(st.sampled_from(["AND", "OR"])), f"({term} OR p)" if is_nested else term
    return " ".join(pieces)


@pytest.fixture(scope="module")
def made() -> Session:
    return session_over({"t": ROWS}, {})


@settings(max_examples=60)
@given(condition=conditions())
def test_conditions_mean_what_they_mean_elsewhere(made: Session, condition: str) -> None:
    sql = f"SELECT p, q, r, {condition} AS v FROM t ORDER BY p, q, r"
    t = ROWS  # noqa: F841 # read by name
    expected = duckdb.sql(sql).to_arrow_table().to_pylist()
    assert asyncio.run(rows(made, sql)) == expected


@pytest.mark.parametrize(
    ("sql", "regrouped"),
    [
        ("a IS DISTINCT FROM b AND c", "((a IS DISTINCT FROM b) AND c)"),
        ("a IS NOT DISTINCT FROM b OR c AND d", "((a IS NOT DISTINCT FROM b) OR c AND d)"),
        ("x AND a IS DISTINCT FROM b OR c", "(x AND (a IS DISTINCT FROM b) OR c)"),
        ("NOT a IS DISTINCT FROM b AND c", "(NOT (a IS DISTINCT FROM b) AND c)"),
        ("a IS DISTINCT FROM NOT b AND c", "((a IS DISTINCT FROM NOT b) AND c)"),
        ("f(a IS DISTINCT FROM b AND c)", "f(((a IS DISTINCT FROM b) AND c))"),
        (
            "a IS DISTINCT FROM (b IS DISTINCT FROM c OR d) AND e",
            "((a IS DISTINCT FROM (((b IS DISTINCT FROM c) OR d))) AND e)",
        ),
    ],
)
def test_parentheses_show_what_is_meant(sql: str, regrouped: str) -> None:
    assert distinct_from.regrouped(f"SELECT {sql}") == f"SELECT {regrouped}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a IS DISTINCT FROM b",
        "SELECT c AND a IS DISTINCT FROM b",
        "SELECT (a IS DISTINCT FROM b) AND c",
        "SELECT a IS DISTINCT FROM (b AND c)",
        "SELECT DISTINCT a FROM t WHERE a AND b",
        "SELECT a IS DISTINCT FROM b FROM t WHERE a AND b",
        "SELECT 'a IS DISTINCT FROM b AND c'",
        "SELECT a IS DISTINCT FROM b AND",
        "SELECT a IS DISTINCT FROM b = c FROM t WHERE NOT a OR b",
    ],
)
def test_other_statements_stay_as_they_are(sql: str) -> None:
    assert distinct_from.regrouped(sql) is None


def test_conditions_of_changes_and_of_subqueries_are_regrouped() -> None:
    for before, after in (
        ("DELETE FROM t WHERE {}", "DELETE FROM t WHERE {}"),
        ("UPDATE t SET a = {}", "UPDATE t SET a = {}"),
        ("SELECT * FROM (SELECT {}) WHERE b", "SELECT * FROM (SELECT {}) WHERE b"),
        ("SELECT 1 FROM t JOIN u ON {}", "SELECT 1 FROM t JOIN u ON {}"),
    ):
        found = distinct_from.regrouped(before.format("a IS DISTINCT FROM b AND c"))
        assert found == after.format("((a IS DISTINCT FROM b) AND c)")
