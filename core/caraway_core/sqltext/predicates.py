"""Checks that a text from a request is one predicate, to be put into a statement."""

import re

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer

_WHERE = re.compile(r"(?i:where)\Z")
MOST_JOINED = 500
"""The most ANDs and ORs; the time to plan a search grows with their square."""
_JOINING = ("AND", "OR")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def in_parentheses(text: str) -> str:
    """Return a predicate in parentheses; it may begin with WHERE.

    It cannot end the parentheses, so whatever it says, it stays a part of its statement. Whether it
    is true or false of rows is for the engine to say.

    Raises:
        InvalidQueryError: it is not one expression, or has too many conditions.
    """
    body = _without_where(text)
    made = f"({body}\n)"
    open_: list[str] = []
    joined, is_empty = 0, True
    tokens = list(lexer.tokens(made))
    for place, token in enumerate(tokens):
        if token.kind == "end":
            raise InvalidQueryError(
                "where is one predicate, such as \"price > 10 AND kind = 'a'\"; remove the ';' "
                "and what follows it"
            )
        if token.kind == "placeholder":
            raise InvalidQueryError(
                f"where has the placeholder {token.text}, but no values can be sent with it; write "
                "the value itself"
            )
        if token.kind == "open":
            open_.append(token.text)
        elif token.kind == "close":
            if not open_ or open_.pop() != _PAIRS[token.text]:
                raise _unbalanced()
            if not open_ and place < len(tokens) - 1:
                raise _unbalanced()
        elif token.kind != "comment":
            is_empty = False
            joined += token.kind == "word" and token.text.upper() in _JOINING
    _check_joined(joined, "where")
    if open_ or tokens[-1].end != len(made):
        raise InvalidQueryError(
            "where has a parenthesis, quote or comment that is not closed; close it"
        )
    if is_empty:
        raise InvalidQueryError("where is empty; leave it out to search all rows")
    return made


def check_joined(sql: str, subject: str) -> None:
    """Check that a text does not join too many conditions; a message names it as `subject`.

    Raises:
        InvalidQueryError: it has more than `MOST_JOINED` ANDs and ORs.
    """
    words = (sql[m.start() : m.end("word")] for m in lexer.matches(sql) if m.lastgroup == "word")
    _check_joined(sum(word.upper() in _JOINING for word in words), subject)


def _check_joined(found: int, subject: str) -> None:
    if found > MOST_JOINED:
        raise InvalidQueryError(
            f"{subject} has more than {MOST_JOINED} ANDs and ORs; write `column IN (...)` for a "
            "list of values, or put the values into a table and write `column IN (SELECT ...)`"
        )


def _without_where(text: str) -> str:
    """Replace WHERE by blanks, so that places in messages are those of the text."""
    for token in lexer.tokens(text):
        if token.kind != "comment":
            is_where = token.kind == "word" and _WHERE.match(token.text)
            blanks = " " * (token.end - token.start)
            return text[: token.start] + blanks + text[token.end :] if is_where else text
    return text


def _unbalanced() -> InvalidQueryError:
    return InvalidQueryError("where closes a parenthesis that it did not open; remove one")
