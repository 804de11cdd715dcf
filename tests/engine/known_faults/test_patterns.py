"""Patterns of SIMILAR TO, and regular expressions that match any text."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import patterns
from tests.engine.known_faults.memory import Asked, duckdb_over
from tests.kit import generating

TEXTS = pa.table({
    "s": ["", "a", "b", "ab", "ba", "aab", "a.b", "axb", "a\nb", "[a]", "a%b", "a_b", "é", "A",
          None, "a|b", "a-b", "x&y", "\\", "a b", "it's"],
})  # fmt: skip
_PLAIN = ("a", "b", "x", ".", "%", "_", "é", "-", " ", "&", "''", "^", "$", "#")
_SIGNS = ("a", "b", "x", "|", "(a|b)", "(ab)", "a*", "b+", "a?", "a{2}", "[ab]", "[^a]", "[a-x]")


@st.composite
def _likes(draw: DrawFn) -> str:
    return "".join(draw(st.lists(st.sampled_from(_PLAIN), max_size=5)))


@st.composite
def _expressions(draw: DrawFn) -> str:
    return "".join(draw(st.lists(st.sampled_from((*_SIGNS, "%", "_")), min_size=1, max_size=4)))


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(texts_=TEXTS)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"texts_": TEXTS})


def right(duck: duckdb.DuckDBPyConnection, value: str) -> list[tuple[object, ...]]:
    return sorted(duck.sql(f"SELECT s, {value} AS r FROM texts_").fetchall(), key=str)


def test_patterns_without_signs_are_those_of_like(
    of: Asked, duck: duckdb.DuckDBPyConnection
) -> None:
    def check(pattern: str) -> None:
        for sign in ("", "NOT "):
            found = of.mended(f"SELECT s, s {sign}SIMILAR TO '{pattern}' AS r FROM texts_")
            assert found == right(duck, f"s {sign}LIKE '{pattern}'"), pattern

    generating.check_same(_likes(), 150, check)


def test_patterns_with_signs_match_the_whole_text(
    of: Asked, duck: duckdb.DuckDBPyConnection
) -> None:
    def check(pattern: str) -> None:
        written = pattern.replace("%", "(?s:.*)").replace("_", "(?s:.)")
        try:
            rows = right(duck, f"regexp_full_match(s, '{written}')")
        except duckdb.Error:
            return
        assert of.mended(f"SELECT s, s SIMILAR TO '{pattern}' AS r FROM texts_") == rows, pattern

    generating.check_same(_expressions(), 250, check)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"a\%b", ["a%b"]),
        ("a!_b' ESCAPE '!", ["a_b"]),
        (r"a\|b", ["a|b"]),
        (r"\[a\]", ["[a]"]),
        ("[[:alpha:]]", ["a", "b", "A"]),
        ("x[&]y", ["x&y"]),
        ("a[%_]b", ["a%b", "a_b"]),
        ("it''s", ["it's"]),
        ("", [""]),
    ],
)
def test_escapes_and_classes(of: Asked, pattern: str, texts: list[str]) -> None:
    found = of.mended(f"SELECT s FROM texts_ WHERE s SIMILAR TO '{pattern}'")
    assert found == sorted(((text,) for text in texts), key=str)


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("s", "must be a constant"),
        ("'a' || 'b'", "must be a constant"),
        ("'a!' ESCAPE '!'", "ends with its escape"),
        ("'[a'", "without a ]"),
    ],
)
def test_other_patterns_are_refused(of: Asked, pattern: str, cause: str) -> None:
    with pytest.raises(InvalidQueryError, match=cause):
        of.mended(f"SELECT s FROM texts_ WHERE s SIMILAR TO {pattern}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s FROM texts_ WHERE NOT (s ~ '.*')",
        "SELECT s FROM texts_ WHERE (s ~* '.*') IS FALSE",
        "SELECT s FROM texts_ WHERE CASE WHEN regexp_like(s, '.*') IS FALSE THEN true END",
        "SELECT s FROM texts_ WHERE (s ~ ('.*')) = false",
    ],
)
def test_no_text_does_not_match_any_text(of: Asked, sql: str) -> None:
    assert of.mended(sql) == []


def test_other_statements_are_not_parsed_for_it() -> None:
    assert not patterns.may_apply("select s from t where s ~ '^a.*' or s like '%'")
