"""A text without its comments has the same tokens, and no comment begins by leaving one out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.sqltext import comments, lexer

PIECES = st.sampled_from(
    ["--", "/*", "*/", "/*!", "\n", " ", "'", '"', "`", "$$", "$a$", "a", "1", "-", "/", "*", ";",
     "E'", "\\", "q'[", "]'", "''", "#x", "@", ":n", "?", "/**/", "5", "!"]
)  # fmt: skip


def significant(sql: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in lexer.tokens(sql) if token.kind != "comment"]


@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_tokens_stay(sql: str) -> None:
    left = comments.left_out(sql)
    assert significant(left) == significant(sql)
    assert not any(token.kind == "comment" for token in lexer.tokens(left))
    assert comments.left_out(left) == left


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "SELECT 1"), ("a--x\nb", "a \nb"), ("a/*x*/b", "a b"), ("a/*/*x*/*/b", "a b"),
        ("'--'", "'--'"), ("$$/*$$", "$$/*$$"), ("a -- x", "a  "), ("/* open", " "),
        ("-/**/-x", "- -x"), ("", ""),
    ],
)  # fmt: skip
def test_texts(sql: str, expected: str) -> None:
    assert comments.left_out(sql) == expected


@pytest.mark.parametrize("inner", ["/*!a*/", "/*!*/", "/*!1 a*/", "/*! /*!a*/ */", "/*!a"])
def test_what_is_in_a_comment_that_runs_does_not_run(inner: str) -> None:
    for sql in (f"/*!{inner}*/", f"1 /*!{inner} b*/ c"):
        plain = lexer.plain(sql)
        assert lexer.plain(plain) == plain
        left = comments.left_out(sql)
        assert significant(left) == significant(sql) == significant(plain)
        assert comments.left_out(left) == left
        assert "a" not in {text for _, text in significant(left)}


def test_what_runs_stays() -> None:
    assert comments.left_out("SELECT /*! 1 */ /* 2 */").split() == ["SELECT", "1"]


@pytest.mark.parametrize("text", ["/*" * 50_000, "--" * 50_000, "/*!" * 30_000, "*/" * 50_000])
def test_hostile_texts_take_linear_time(text: str) -> None:
    assert len(comments.left_out(text)) <= 3 * len(text) + 3
