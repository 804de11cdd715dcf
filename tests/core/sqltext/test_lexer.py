"""Tokens and nested comments."""

import pytest

from caraway_core.sqltext import comments, lexer
from tests.kit.hostile import UNCLOSED


def kinds(sql: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in lexer.tokens(sql)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("'it''s'", "text"),
        (r"'\'", "text"),
        (r"E'\''", "prefixed"),
        ("nq'[']'", "prefixed"),
        ('b"x"', "prefixed"),
        ("$t$ $ $t$", "dollar"),
        ('"a""b"', "name"),
        ("`a``b`", "name"),
        ("Größe", "word"),
        ("a$1#@", "word"),
        ("@@x", "variable"),
        ("#'", "variable"),
        ("1.5e-3", "number"),
        ("0x1F", "number"),
        (".5", "number"),
        ("1L", "number"),
        ("$name", "placeholder"),
        (":name", "placeholder"),
        ("?12", "placeholder"),
        ("::", "operator"),
        ("//", "operator"),
        ("->>", "operator"),
        ("--x", "comment"),
        ("/* x */", "comment"),
        ("{", "open"),
        ("]", "close"),
        (",", "comma"),
        (";", "end"),
        (".", "other"),
        ("\x00", "other"),
    ],
)
def test_kinds(sql: str, kind: str) -> None:
    assert kinds(f" {sql}\n") == [(kind, sql)]


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("a.b", ["a", ".", "b"]),
        ("1_0", ["1", "_0"]),
        ("1E'x'", ["1", "E'x'"]),
        ("0xE'x'", ["0xE", "'x'"]),
        ("1.e'x'", ["1.", "e'x'"]),
        ("x:int", ["x", ":", "int"]),
        ("x[1:n]", ["x", "[", "1", ":", "n", "]"]),
        (":a$b", [":", "a$b"]),
        ("a::b", ["a", "::", "b"]),
        ("$$$", ["$$$"]),
        ("U& 'a'", ["U", "&", "'a'"]),
        ("#--a", ["#-", "-", "a"]),
    ],
)
def test_what_is_written_together_is_cut(sql: str, texts: list[str]) -> None:
    assert [text for _, text in kinds(sql)] == texts


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("a /* b */ c", "a /* b */ c"),
        ("a /* /* */ b */ c", "a /*         */ c"),
        ("'/* /* */' /* ' */", "'/* /* */' /* ' */"),
        ("a /* /* b */ c", "a /*          "),
        ("/*/ */", "/*/ */"),
        ("/*!50 a */ b", "      a \n  b"),
        ("/*!a /* b */ c*/", "   a /* b */ c\n "),
        ("/*! /*! a */ b */", "    /*    */ b \n "),
        ("/*! a", "/*   "),
        ("/* /*! a */ */", "/*          */"),
    ],
)
def test_comments_are_made_plain(sql: str, plain: str) -> None:
    assert lexer.plain(sql) == plain
    assert len(plain) == len(sql)


def test_a_line_comment_ends_with_the_comment_that_runs_it() -> None:
    assert [text for _, text in kinds("1 /*!--*/ , 2")] == ["1", "--", ",", "2"]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "SELECT"),
        ("\n/* /* a */ */ ; -- b\n delete", "DELETE"),
        ("/*! insert */ into t", "INSERT"),
        ("'select'", ""),
        ("(select 1)", ""),
        ("-- select", None),
        ("/* /* */ select", None),
        ("/*! /* */ */ select 1", "SELECT"),
        ("/*! /*! delete */ */ select 1", "SELECT"),
        ("", None),
    ],
)
def test_the_first_word(sql: str, word: str | None) -> None:
    assert lexer.first_word(sql) == word


@pytest.mark.parametrize("text", UNCLOSED)
def test_texts_without_ends_are_read_once(text: str) -> None:
    assert sum(1 for _ in lexer.tokens(text))
    assert len(lexer.plain(text)) == len(text)


@pytest.mark.parametrize(
    "text",
    ["/*!" * 300_000, "/*! */" * 50_000, "/*/**/*/" * 50_000, "$" * 500_000, "@" * 500_000],
)
def test_comments_in_comments_are_read_once(text: str) -> None:
    assert len(lexer.plain(text)) == len(text)
    assert sum(1 for _ in lexer.matches(text)) <= len(text)


def test_comments_are_left_out() -> None:
    assert comments.left_out("a /* /* */ ' */ b -- c\n 'd -- /* e' /*!1 f */") == (
        "a   b  \n 'd -- /* e'      f \n "
    )
    assert comments.left_out("a 'b'") == "a 'b'"
