"""Separates EXPLAIN from the statement that it explains."""

from collections.abc import Iterator
from dataclasses import dataclass

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken


@dataclass(frozen=True, slots=True)
class ExplainedStatement:
    """The explained statement, and how: whether it runs, verbosely, in a format."""

    statement: str
    is_run: bool
    is_verbose: bool = False
    has_format: bool = False


def parse(sql: str) -> ExplainedStatement | None:
    """Return the statement that an EXPLAIN explains, or None for other statements."""
    if lexer.first_word(sql) != "EXPLAIN":
        return None
    text = lexer.plain(sql)
    tokens = lexer.significant(text)
    next(tokens)
    word, start = _next(tokens)
    if is_run := word == "ANALYZE":
        word, start = _next(tokens)
    if is_verbose := word == "VERBOSE":
        word, start = _next(tokens)
    if has_format := word == "FORMAT":
        _next(tokens)
        word, start = _next(tokens)
    return ExplainedStatement(text[start:], is_run, is_verbose, has_format) if word else None


def _next(tokens: Iterator[SqlToken]) -> tuple[str, int]:
    """Return the next token in upper case and its start; empty at the end of the text."""
    token = next(tokens, None)
    return (token.text.upper(), token.start) if token else ("", 0)
