"""Tokens of conditions that have subqueries: whose columns they name, and other names for them."""

from collections.abc import Collection

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

_MOST_NAMES = 2
"""The name of the table, and one alias."""


def owned(names: list[str | None], qualifiers: Collection[str]) -> list[int] | None:
    """Return where columns are qualified by one of these; None if it means something else, too."""
    places = [place for place, name in enumerate(names) if name in qualifiers]
    is_qualifier = [names[place + 1 : place + 2] == ["."] for place in places]
    used = {names[place] for place in places}
    return places if all(is_qualifier) and len(used) <= _MOST_NAMES else None


def is_renamed(tokens: list[SqlToken], names: list[str | None], place: int) -> bool:
    """Return whether the table at a place has an alias, which hides its name."""
    follows = [each.text.upper() for each in tokens[place + 1 : place + 2]]
    return follows == ["AS"] and names[place + 2 : place + 3] != [names[place]]


def aliased(text: str) -> str:
    """Qualify columns by the alias of their table, where it has one."""
    tokens = list(lexer.significant(text))
    names = [name_of(each) for each in tokens]
    given: dict[str, str] = {}
    for place, token in enumerate(tokens):
        if token.kind == "word" and token.text.upper() == "AS" and 0 < place < len(tokens) - 1:
            table, alias = names[place - 1], names[place + 1]
            if table and alias and table != ".":
                given[table] = alias
    pieces: list[str] = []
    done = 0
    for place, token in enumerate(tokens[:-1]):
        alias = given.get(names[place] or "")
        if alias is not None and names[place + 1] == ".":
            pieces += text[done : token.start], quoted(alias)
            done = token.end
    return "".join((*pieces, text[done:]))


def requalified(text: str, qualifiers: list[SqlToken], table: str) -> str:
    """Write another name in place of these tokens."""
    pieces: list[str] = []
    done = 0
    for token in qualifiers:
        pieces += text[done : token.start], table
        done = token.end
    return "".join((*pieces, text[done:]))


def is_in_subquery(tokens: list[SqlToken]) -> bool:
    """Return whether what follows these tokens is inside of a subquery."""
    depth, selects = 0, [0]
    for token in tokens:
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            selects = [each for each in selects if each <= depth]
        elif token.kind == "word" and token.text.upper() == "SELECT":
            selects.append(depth)
    return len(selects) > 1


def name_of(token: SqlToken) -> str | None:
    """Return a name without its quotes, or a dot; None for other tokens."""
    if token.kind == "name":
        return token.text[1:-1].replace('""', '"')
    return token.text if token.kind == "word" or token.text == "." else None


def quoted(name: str) -> str:
    """Return a name in quotes, for SQL."""
    return '"' + name.replace('"', '""') + '"'
