"""Writes names as SQL identifiers."""

from caraway_core.ids import TableName
from caraway_core.manifest.texts import names
from caraway_core.sqltext import identifiers


def quoted(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: TableName) -> str:
    """Return a table name as an SQL identifier of one or two parts."""
    return ".".join(map(quoted, name.split(".")))


def plain_name(name: str) -> str:
    """Return a column name as people write it in SQL: quoted only where it must be."""
    return name if identifiers.is_plain(name) else quoted(name)


def plain_table(name: TableName) -> str:
    """Return a table name as people write it in SQL: quoted only where it must be."""
    parts = name.split(".")
    if all(plain_name(part) == part for part in parts):
        return name
    return quoted_table(TableName(names.identity(name)))
