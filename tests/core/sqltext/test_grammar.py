"""Fragments of the grammar: each reads its token to the end, in linear time."""

import re
import tracemalloc

import pytest

from caraway_core.sqltext import grammar

FLAGS = re.VERBOSE | re.DOTALL
SIZE = 200_000
"""A pattern that backtracks would take minutes for texts of this size."""


def length(pattern: str, text: str) -> int:
    """Return how many characters the pattern reads at the begin of a text; -1 is none."""
    found = re.compile(pattern, FLAGS).match(text)
    return -1 if found is None else found.end()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a", 1),
        ("a.b", 1),
        ('"a"', 3),
        ('"a.b"."c"', 5),
        ('"a""b"', 6),
        ('""', 2),
        ("`a``b` x", 6),
        ("größe", 5),
        ("a$1@#b c", 6),
        ('"a', -1),
        ('"a""', -1),
        ("`a", -1),
        ("1a", -1),
        ("'a'", -1),
        ("", -1),
        (" a", -1),
    ],
)
def test_closed_names_end_where_their_quotes_end(text: str, read: int) -> None:
    assert length(grammar.CLOSED_NAME, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("-- a\nb", 4),
        ("--", 2),
        ("/* a */ b", 7),
        ("/* a", 4),
        ("/**/", 4),
        ("/***/ x", 5),
        ("/* a * / */x", 11),
        ("- a", -1),
        ("/ *", -1),
    ],
)
def test_comments_end_at_their_line_or_sign(text: str, read: int) -> None:
    assert length(grammar.COMMENT, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("'a'", 3),
        ("'a''b' c", 6),
        ("'a", 2),
        ("''", 2),
        ("'''", 3),
        ("'a\\' b", 4),
        ("'a\0b'", 5),
        ("'a\nb'", 5),
    ],
)
def test_texts_know_no_backslash(text: str, read: int) -> None:
    assert length(grammar.TEXT, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("e'\\''x'", 5),
        ("E'a''b'c", 7),
        ("r'''a''b''' c", 11),
        ('R"""a"""b', 8),
        ("u&'a'", 5),
        ("q'[a]b]' c", 8),
        ("q'{a}'b'", 6),
        ("nq'(a)'", 7),
        ("q'!a'!b!' c", 9),
        ("q'!a", 4),
        ("e'a\\", 4),
        ("a'b'", -1),
        ("q''", 3),
    ],
)
def test_texts_with_a_prefix_end_at_their_own_sign(text: str, read: int) -> None:
    pattern = f"(?:{grammar.TOKENS['prefixed']})"
    assert length(pattern, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [("$$a$$b", 5), ("$t$ $x$ $t$ y", 11), ("$t$a", 4), ("$a b$", -1), ("$$", 2), ("$1$a$1$", 7)],
)
def test_dollar_texts_end_at_their_own_tag(text: str, read: int) -> None:
    assert length(grammar.DOLLAR_TEXT, text) == read


@pytest.mark.parametrize(
    ("text", "at", "read"),
    [
        (":a", 0, 2),
        ("(:a)", 1, 2),
        ("a:b", 1, -1),
        ("x[1:n]", 3, -1),
        ("::a", 0, -1),
        ("'t':b", 3, -1),
        ("?", 0, 1),
        ("?12", 0, 3),
        ("$?", 1, -1),
        ("$name", 0, 5),
        (":a@b", 0, -1),
    ],
)
def test_placeholders_are_told_from_colons_of_types_and_ranges(
    text: str, at: int, read: int
) -> None:
    found = re.compile(grammar.PLACEHOLDER, FLAGS).match(text, at)
    assert (-1 if found is None else found.end() - at) == read


@pytest.mark.parametrize(
    "unit", ["'", "''", "\"'", "/*", "*/", "--", "$$", "$a$", "q'[", "e'\\", "`", "@", "#", ":",
             "?", "\\", "a", "1", ".", "é", "\0", "((", "q'!", "r'''"]
)  # fmt: skip
def test_every_text_is_read_whole_token_by_token(unit: str) -> None:
    """There is a token at each place, and no token is empty."""
    text = unit * (SIZE // len(unit))
    token = re.compile(rf"\s*+{grammar.ANY_TOKEN}", FLAGS)
    at = 0
    while at < len(text):
        found = token.match(text, at)
        assert found is not None and found.end() > at
        at = found.end()
    assert at == len(text)


def test_long_tokens_take_no_memory_of_their_own() -> None:
    """Possessive parts keep no places to come back to."""
    text = "'" + "a''" * SIZE + "'"
    pattern = re.compile(grammar.TEXT, FLAGS)
    tracemalloc.start()
    try:
        found = pattern.match(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None and found.end() == len(text)
    assert peak < 1_000_000
