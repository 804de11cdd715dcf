"""Puts parentheses around parts of ROLLUP, CUBE and GROUPING SETS.

For the parser of DataFusion 55, a part that begins with `(` is a list of columns, so that it ends
at the `)`: `ROLLUP ((t.g)['x'], y)` is a syntax error. The parser of the remedies wants parentheses
around all parts of GROUPING SETS.
"""

import re
from collections.abc import Iterator, Sequence

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

_MAY_APPLY = re.compile(r"\b(?:rollup|cube|sets)\b", re.IGNORECASE)
_WORDS = frozenset({"rollup", "cube", "sets"})
_SETS = frozenset({"rollup", "cube", "grouping"})
_OPEN, _CLOSE = frozenset("(["), frozenset(")]")


def closed(sql: str) -> str | None:
    """Write a statement with the parentheses that it needs; None if it needs none."""
    if _MAY_APPLY.search(sql) is None:
        return None
    text = lexer.plain(sql)
    tokens = list(lexer.significant(text))
    places = sorted(_places(tokens), reverse=True)
    for place, sign in places:
        text = text[:place] + sign + text[place:]
    return text if places else None


def _places(tokens: Sequence[SqlToken]) -> Iterator[tuple[int, str]]:
    for index, token in enumerate(tokens[:-1]):
        if token.text.lower() in _WORDS and tokens[index + 1].text == "(":
            for part in _parts(tokens, index + 2):
                if part and _is_bare(part, is_set=token.text.lower() == "sets"):
                    yield part[0].start, "("
                    yield part[-1].end, ")"


def _is_bare(part: Sequence[SqlToken], *, is_set: bool) -> bool:
    if part[0].text == "(":
        return _end(part) < len(part) - 1
    return is_set and part[0].text.lower() not in _SETS


def _parts(tokens: Sequence[SqlToken], begin: int) -> Iterator[Sequence[SqlToken]]:
    """Yield the tokens of each part of a list, whose first token is at `begin`."""
    depth, start = 0, begin
    for index in range(begin, len(tokens)):
        text = tokens[index].text
        if depth == 0 and text in (",", ")"):
            yield tokens[start:index]
            start = index + 1
            if text == ")":
                return
        depth += (text in _OPEN) - (text in _CLOSE)


def _end(part: Sequence[SqlToken]) -> int:
    """Return the place of the parenthesis that closes the first one."""
    depth = 0
    for index, token in enumerate(part):
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0:
            return index
    return len(part)
