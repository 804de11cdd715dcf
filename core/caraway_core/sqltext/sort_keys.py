"""Reads the keys of an ORDER BY that are names of columns."""

from collections.abc import Iterator
from dataclasses import dataclass

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

_DIRECTIONS = ("ASC", "DESC")
_PLACES_OF_NULL = ("FIRST", "LAST")


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key: a name as it is written, and `ASC` or `DESC`, `FIRST` or `LAST` if they are given."""

    name: str
    direction: str = ""
    nulls: str = ""


def sort_keys(text: str) -> Iterator[NamedKey]:
    """Yield the keys between commas; a name may be anything, and is empty where none is."""
    sql = lexer.plain(text)
    key: list[SqlToken] = []
    for token in lexer.tokens(sql):
        if token.kind == "comma":
            yield _read(sql, key)
            key = []
        else:
            key.append(token)
    yield _read(sql, key)


def _read(sql: str, key: list[SqlToken]) -> NamedKey:
    words = [each.text.upper() for each in key]
    nulls = direction = ""
    if len(words) > 2 and words[-2] == "NULLS" and words[-1] in _PLACES_OF_NULL:
        nulls = words[-1]
        del words[-2:]
    if len(words) > 1 and words[-1] in _DIRECTIONS:
        direction = words.pop()
    name = sql[key[0].start : key[len(words) - 1].end] if words else ""
    return NamedKey(name, direction, nulls)


def bare_name(name: str) -> str:
    """Return a name without its double quotes; of a name without them, the name itself."""
    is_quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return name[1:-1].replace('""', '"') if is_quoted else name
