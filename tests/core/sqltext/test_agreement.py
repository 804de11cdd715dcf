"""The lexer and the engine's parser find the same literals, and as many statements."""

from typing import Any

import pytest
import sqloxide
from datafusion import SessionContext
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from caraway_core.sqltext import lexer, splitting

_LITERALS = frozenset({"text", "prefixed", "dollar", "number", "placeholder"})
_PIECES = (
    "'", "''", "'a'", '"', '"b"', "`", "`c`", "$$", "$t$", "$1$", "$1", "$", "?", "?2", "\\", "\\'",
    "E'", "e'", "X'", "b'", "R'", "r'''", "'''", '"""', 'R"', "n'", "Q'[", "nq'!", "]'", "!'",
    "U&'", "--", "/*", "*/", "/*", "*/", "/", "//", "*", "-", "#", "@", ";", "; SELECT ", "\n",
    "\r\n", "\t", " ", " ", " ", ",", ",", "1", "1e5", "1_0", "0x1F", ".5", "5.", "L", "a",
    "b$c", "é", "E", "q",
)  # fmt: skip
_NUMBERED = frozenset({"Number", "Placeholder"})


def literals(tree: Any) -> int:
    """Count the values in the parser's tree, and the names that are written as strings."""
    if isinstance(tree, list):
        return sum(map(literals, tree))
    if not isinstance(tree, dict):
        return 0
    if tree.get("quote_style") == "'" or _is_value(tree):
        return 1
    return sum(map(literals, tree.values()))


def _is_value(tree: dict[str, Any]) -> bool:
    kind = next(iter(tree), "")
    return len(tree) == 1 and ("String" in kind or kind in _NUMBERED) and kind != "String"


@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=9))
@settings(max_examples=1_500, deadline=None)
def test_what_the_parser_reads_is_cut_as_the_parser_does(pieces: list[str]) -> None:
    sql = "SELECT " + "".join(pieces)
    # The parser reads `@` before a quoted name, or before `?`, as one token.
    assume("@" not in sql.replace("a@", ""))
    try:
        tree = sqloxide.parse_sql(sql, dialect="generic")
    except ValueError:
        return
    assert len(splitting.split(sql).all()) == len(tree)
    found = [token for token in lexer.tokens(sql) if token.kind in _LITERALS]
    lone = [token for token in lexer.tokens(sql) if token.text == "$"]
    assert len(found) + len(lone) == literals(tree)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (r"SELECT E'\''", "'"),
        (r"SELECT '\'", "\\"),
        ("SELECT $1$it's$1$", "it's"),
        ("SELECT 'a' /* /* ' */ */", "a"),
        ("SELECT 'a' --'", "a"),
        ("SELECT x$$ FROM (SELECT 'a' AS x$$)", "a"),
        ("SELECT `x``y` FROM (SELECT 'a' AS \"x`y\")", "a"),
        ("/*! SELECT 'a' */", "a"),
        (";; SELECT 'a' ;", "a"),
    ],
)
def test_the_engine_reads_the_dialect_of_the_parser(sql: str, value: str) -> None:
    assert list(SessionContext().sql(sql).to_pydict().values()) == [[value]]
