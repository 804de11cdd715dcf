"""Finds the tables that a text of SQL may name."""

from collections.abc import Iterable

from caraway_core.ids import TableName
from caraway_core.sqltext import lexer


def mentioned(sql: str, known: Iterable[TableName]) -> set[TableName]:
    """Return the tables whose names are words of the text, with or without their schema."""
    words = {
        each.text[1:-1] if each.kind == "name" else each.text.lower()
        for each in lexer.significant(sql)
    }
    return {name for name in known if name.rpartition(".")[2] in words}
