"""Finds the tables that a text of SQL may name."""

from collections.abc import Container, Iterable

from caraway_core.ids import TableName
from caraway_core.sqltext import lexer


def mentioned(sql: str, known: Iterable[TableName]) -> set[TableName]:
    """Return the tables whose names are words of the text, with or without their schema."""
    words = {
        each.text[1:-1] if each.kind == "name" else each.text.lower()
        for each in lexer.significant(sql)
    }
    return {name for name in known if name.rpartition(".")[2] in words}


def of_catalogs(sql: str, catalogs: Container[str]) -> list[TableName]:
    """Return the names of three parts in a text whose first part is one of the catalogs.

    Some may not name tables: `a.b.c` is also a column of a table with its schema.
    """
    found: dict[TableName, None] = {}
    parts: list[str] = []
    follows_dot = False
    for each in lexer.significant(sql):
        if each.text == ".":
            follows_dot = bool(parts)
            continue
        if each.kind not in ("word", "name"):
            parts, follows_dot = [], False
            continue
        part = _unquoted(each.text) if each.kind == "name" else each.text.lower()
        parts = [*parts, part] if follows_dot else [part]
        follows_dot = False
        if len(parts) == 3 and parts[0] in catalogs:
            found[TableName(".".join(parts))] = None
    return list(found)


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])
