"""The effects of statements in the binary log on the table that is followed."""

from collections.abc import Sequence
from typing import Literal

from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

Effect = Literal["begin", "none", "truncate", "alter", "replace"]
_QUOTES = '"`'
_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "MERGE"})
"""Verbs of statements that are logged as rows, unless a session has changed the format."""
_TABLES = frozenset({"CREATE", "DROP", "RENAME", *_ROWS})


def effect_of(sql: str, schema: str, relation: tuple[str, str]) -> Effect:
    """Return what a statement does to a table, given the default schema of the statement.

    One that names a table of this name in another schema may count, too, where that only costs a
    look at the table or a new load.
    """
    tokens = list(lexer.significant(sql))
    words = [each.text.upper() for each in tokens[:3]]
    if not words or words[0] in ("BEGIN", "START"):
        return "begin"
    if words[0] == "XA":
        # The log has the rows of such a transaction before it is known whether they count.
        return "replace" if words[1:2] in (["COMMIT"], ["PREPARE"]) else "begin"
    if words[0] == "TRUNCATE":
        named = tokens[2 if words[1:2] == ["TABLE"] else 1 :]
        return "truncate" if _first_name(named, schema) == relation else "none"
    if words[:2] in (["DROP", "DATABASE"], ["DROP", "SCHEMA"]):
        return "replace" if relation[0] in map(_name, tokens) else "none"
    if relation[1] not in map(_name, tokens):
        return "none"
    if words[0] == "ALTER":
        return "replace" if "RENAME" in map(_upper, tokens) and _moves(tokens) else "alter"
    is_index = words[1:2] in (["INDEX"], ["UNIQUE"], ["FULLTEXT"], ["TRIGGER"], ["VIEW"])
    return "replace" if words[0] in _TABLES and not is_index else "none"


def _moves(tokens: Sequence[SqlToken]) -> bool:
    """Return whether an ALTER TABLE renames the table, and not a column or an index."""
    words = [*map(_upper, tokens), ""]
    return any(
        word == "RENAME" and words[place + 1] not in ("COLUMN", "INDEX", "KEY")
        for place, word in enumerate(words[:-1])
    )


def _first_name(tokens: Sequence[SqlToken], schema: str) -> tuple[str, str]:
    names = [_name(each) for each in tokens[:3]]
    if len(names) == 3 and names[1] == ".":
        return names[0], names[2]
    return schema, names[0] if names else ""


def _name(token: SqlToken) -> str:
    text = token.text
    if text[:1] in _QUOTES and len(text) > 1:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _upper(token: SqlToken) -> str:
    return token.text.upper()
