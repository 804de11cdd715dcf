"""All readers of SQL text agree with the engine's parser about code, comments and strings."""

import pytest
import sqloxide

from caraway_core.partitions import keys
from caraway_core.sqltext import comments, explained, lexer, placeholders, splitting, writing
from caraway_core.sqltext.explained import ExplainedStatement
from tests.kit.sql_texts import COMMENTS, HIDING, SHOWING


def parsed(sql: str) -> int:
    """Return the number of statements that the parser finds; 0 if it rejects the text."""
    try:
        return len(sqloxide.parse_sql(sql, dialect="generic"))
    except ValueError:
        return 0


@pytest.mark.parametrize("text", HIDING)
def test_what_is_hidden_is_not_read(text: str) -> None:
    sql = f"SELECT {text}"
    assert parsed(sql) in (0, 1)
    assert splitting.split(sql).all() == (sql.strip(),)
    assert placeholders.find(sql).names == frozenset()
    assert placeholders.find(sql).sql == sql
    assert not writing.may_change(sql)
    assert "DELETE" not in {token.text for token in lexer.tokens(sql)}


@pytest.mark.parametrize("text", SHOWING)
def test_what_is_code_is_read(text: str) -> None:
    sql = f"SELECT {text}"
    assert len(splitting.split(sql).all()) == 2
    assert placeholders.find(sql).names == {"a"}
    assert writing.may_change(sql)
    assert "DELETE" in {token.text for token in lexer.tokens(sql)}


def test_the_parser_reads_the_tables_so() -> None:
    hidden = [parsed(f"SELECT {text}") for text in HIDING]
    shown = [parsed(f"SELECT {text}") for text in SHOWING]
    assert hidden.count(1) > 30
    assert shown.count(2) > 12
    assert 2 not in hidden
    assert 1 not in shown


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_statement_begins_behind_its_comments(comment: str) -> None:
    assert writing.begins_with_write(f"{comment} DELETE FROM t")
    assert explained.parse(f"{comment} EXPLAIN SELECT 1") == ExplainedStatement(
        "SELECT 1", is_run=False
    )
    assert comments.left_out(f"a {comment}b") == "a  b"


@pytest.mark.parametrize("text", [*HIDING, *SHOWING])
def test_tokens_cover_the_text(text: str) -> None:
    done = 0
    for token in lexer.tokens(text):
        assert not text[done : token.start].strip()
        assert token.kind == "comment" or text[token.start : token.end] == token.text
        done = token.end
    assert not text[done:].strip()


@pytest.mark.parametrize("text", SHOWING)
def test_no_term_of_partitions_holds_a_second_statement(text: str) -> None:
    with pytest.raises(ValueError, match="write one expression without it"):
        keys.parse(text)
