"""Splits SQL text into tokens, as the engine's parser does.

Comments can be nested, and the parser runs the content of `/*! ... */`. A regular expression cannot
find the end of such comments, so a text that may have them is first rewritten without.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from caraway_core.sqltext import grammar

_FLAGS = re.VERBOSE | re.DOTALL
# The group of a kind is empty and follows its token, because a branch that begins with a group is
# slower. Each match includes the space after it, so that no branch is tried there.
_KINDS = "|".join(f"{token}(?P<{kind}>)" for kind, token in grammar.TOKENS.items())
_TOKEN = re.compile(rf"(?:{_KINDS})\s*+", _FLAGS)
_UP_TO_BLOCK_COMMENT = re.compile(rf"\s*+(?:(?!/\*){grammar.ANY_TOKEN}\s*+)*+", _FLAGS)
# Nested comments are handled below; most comments have none and are skipped at once.
_UP_TO_STATEMENT = re.compile(
    r"(?:[\s;]++|--[^\n]*+|/\*(?!!)(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)*+", _FLAGS
)
_MAY_BE_SPECIAL = re.compile(r"/\*(?:!|(?:[^*/]++|\*(?!/)|/(?!\*))*+/\*)")
"""A comment that runs, or that has a nested comment; the match may be inside a string."""
_EDGE_OF_COMMENT = re.compile(r"/\*|\*/")
_RUN_COMMENT = re.compile(r"/\*![0-9]*+")
_OPENING, _CLOSING = "/*", "*/"
_COMMENT = frozenset({"comment"})
_BEFORE_STATEMENTS = frozenset({"comment", "end"})
_AFTER_RUN_COMMENT = "\n "
"""Replaces the end of such a comment; it also ends a line comment inside."""


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A token of SQL text; `kind` is the name of its group in the pattern."""

    kind: str
    text: str
    start: int
    end: int


def tokens(sql: str) -> Iterator[SqlToken]:
    """Yield the tokens of a text; the content of a nested comment is blank."""
    sql = plain(sql)
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or ""
        start, end = match.start(), match.end(kind)
        yield SqlToken(kind, sql[start:end], start, end)


def significant(sql: str) -> Iterator[SqlToken]:
    """Yield the tokens without comments and without leading semicolons."""
    has_begun = False
    for token in tokens(sql):
        if token.kind not in (_COMMENT if has_begun else _BEFORE_STATEMENTS):
            has_begun = True
            yield token


def first_word(sql: str) -> str | None:
    """Return the first word of a statement in upper case, or "" if it begins with another token.

    Returns None if there is no statement. The text after the word is not read.
    """
    return _first_word(sql, runs=True)


def _first_word(sql: str, *, runs: bool) -> str | None:
    place = passed(_UP_TO_STATEMENT, sql, 0)
    while sql.startswith(_OPENING, place):
        end, is_closed = _end_of_comment(sql, place)
        if runs and is_closed and (begin := _RUN_COMMENT.match(sql, place)):
            inside = _first_word(sql[begin.end() : end - len(_CLOSING)], runs=False)
            if inside is not None:
                return inside
        place = passed(_UP_TO_STATEMENT, sql, end)
    match = _TOKEN.match(sql, place)
    if match is None:
        return None
    return sql[place : match.end("word")].upper() if match.lastgroup == "word" else ""


def matches(sql: str) -> Iterator[re.Match[str]]:
    """Yield a match for each token, in half the time of `tokens`.

    The `lastgroup` of a match is the kind; the token extends from `start()` to `end(kind)`.
    """
    return _TOKEN.finditer(plain(sql))


def plain(sql: str) -> str:
    """Rewrite comments that run or are nested; the length and the tokens stay the same.

    Such comments are rare, so most texts are returned unchanged. Inside of a comment that runs,
    another one does not: it is blank afterwards, so that no later reading runs it.
    """
    # Searching for one character is much faster than for two.
    if "/" in sql and _OPENING in sql and _MAY_BE_SPECIAL.search(sql):
        return _plain(sql, runs=True)
    return sql


def _plain(sql: str, *, runs: bool) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, is_closed in _special_comments(sql):
        begin = _RUN_COMMENT.match(sql, start) if runs and is_closed else None
        written = _opened(sql, begin, end) if begin else _blank(end - start, is_closed)
        pieces += sql[done:start], written
        done = end
    pieces.append(sql[done:])
    return "".join(pieces)


def _special_comments(sql: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of comments that are nested or would run, and whether they are closed."""
    end = 0
    while (start := passed(_UP_TO_BLOCK_COMMENT, sql, end)) < len(sql):
        closing = sql.find(_CLOSING, start + len(_OPENING))
        is_closed = closing >= 0
        end = closing + len(_CLOSING) if is_closed else len(sql)
        if is_closed and sql.find(_OPENING, start + len(_OPENING), end) >= 0:
            end, is_closed = _end_of_comment(sql, start)
            yield start, end, is_closed
        elif not is_closed or sql.startswith("/*!", start):
            yield start, end, is_closed


def passed(pattern: re.Pattern[str], sql: str, begin: int) -> int:
    """Return where the match of a pattern ends, or `begin` without a match."""
    match = pattern.match(sql, begin)
    return match.end() if match else begin


def _end_of_comment(sql: str, start: int) -> tuple[int, bool]:
    """Return where a comment ends, and whether it is closed."""
    depth = 0
    for edge in _EDGE_OF_COMMENT.finditer(sql, start):
        depth += 1 if edge[0] == _OPENING else -1
        if depth == 0:
            return edge.end(), True
    return len(sql), False


def _opened(sql: str, begin: re.Match[str], end: int) -> str:
    """Return the content of a comment that runs; comments inside become plain comments."""
    inside = sql[begin.end() : end - len(_CLOSING)]
    inside = _plain(inside, runs=False) if _OPENING in inside else inside
    return " " * len(begin[0]) + inside + _AFTER_RUN_COMMENT


def _blank(length: int, is_closed: bool) -> str:
    closing = _CLOSING if is_closed else ""
    return _OPENING + " " * (length - len(_OPENING + closing)) + closing
