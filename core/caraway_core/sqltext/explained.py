"""Takes EXPLAIN off a statement."""

from collections.abc import Iterator
from dataclasses import dataclass

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken


@dataclass(frozen=True, slots=True)
class ExplainedStatement:
    """The statement behind an EXPLAIN, and whether it is to be run."""

    statement: str
    is_run: bool


def parse(sql: str) -> ExplainedStatement | None:
    """Take EXPLAIN off a statement; None for any other."""
    if lexer.first_word(sql) != "EXPLAIN":
        return None
    text = lexer.plain(sql)
    tokens = lexer.significant(text)
    next(tokens)
    word, start = _next(tokens)
    if is_run := word == "ANALYZE":
        word, start = _next(tokens)
    if word == "VERBOSE":
        word, start = _next(tokens)
    if word == "FORMAT":
        _next(tokens)
        word, start = _next(tokens)
    return ExplainedStatement(text[start:], is_run) if word else None


def _next(tokens: Iterator[SqlToken]) -> tuple[str, int]:
    """Return a token in capitals and where it begins; nothing at the end of the text."""
    token = next(tokens, None)
    return (token.text.upper(), token.start) if token else ("", 0)
