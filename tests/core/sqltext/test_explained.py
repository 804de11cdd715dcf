"""Separating EXPLAIN from a statement."""

import pytest

from caraway_core.sqltext import explained
from caraway_core.sqltext.explained import ExplainedStatement
from tests.kit.hostile import UNCLOSED


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("EXPLAIN SELECT 1", ExplainedStatement("SELECT 1", is_run=False)),
        ("explain analyze SELECT 1", ExplainedStatement("SELECT 1", is_run=True)),
        (
            " -- a\n/* b */ /**/EXPLAIN VERBOSE SELECT 1",
            ExplainedStatement("SELECT 1", is_run=False, is_verbose=True),
        ),
        ("EXPLAIN ANALYZE VERBOSE SELECT 1", ExplainedStatement("SELECT 1", True, True)),
        ("EXPLAIN FORMAT TREE SELECT 1", ExplainedStatement("SELECT 1", False, has_format=True)),
        ("/* or * that */ EXPLAIN SELECT 1", ExplainedStatement("SELECT 1", is_run=False)),
        ("EXPLAIN/**/SELECT 1", ExplainedStatement("SELECT 1", is_run=False)),
        ("/* /* a */ b */ EXPLAIN SELECT 1", ExplainedStatement("SELECT 1", is_run=False)),
        ("; EXPLAIN ANALYZE /* a */ SELECT 1", ExplainedStatement("SELECT 1", is_run=True)),
        ("EXPLAIN", None),
        ("EXPLAIN$x", None),
        ("SELECT 1", None),
        ("DESCRIBE t", None),
        ("SELECT 'EXPLAIN '", None),
        ("/* EXPLAIN */ SELECT 1", None),
        ("-- EXPLAIN SELECT 1", None),
    ],
)
def test_explain_is_taken_off(sql: str, asked: ExplainedStatement | None) -> None:
    assert explained.parse(sql) == asked


@pytest.mark.parametrize("text", UNCLOSED)
def test_texts_without_ends_are_read_once(text: str) -> None:
    assert explained.parse(text) is None


@pytest.mark.parametrize("comment", ["/**/", "/* a */ ", "--\n", "-- a\n "])
@pytest.mark.parametrize("end", ["DESCRIBE t", "EXPLAIN SELECT 1", "/* "])
def test_many_comments_before_a_statement_are_read_once(comment: str, end: str) -> None:
    found = explained.parse(comment * 20_000 + end)
    assert (found is not None) == end.startswith("EXPLAIN")
