"""Writes names as SQL identifiers."""

from caraway_core.ids import TableName


def quoted(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: TableName) -> str:
    """Return a table name as an SQL identifier of one or two parts."""
    return ".".join(map(quoted, name.split(".")))
