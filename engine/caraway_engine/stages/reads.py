"""Tells which tables a relation reads, and whether its rows are those of one of them."""

from substrait.algebra_pb2 import Rel

from caraway_core.ids import TableName
from caraway_engine.stages import naming
from caraway_engine.stages.graph import TableReads
from caraway_engine.stages.relations import has_window, kind, table_name, walk


def table_reads(root: Rel) -> TableReads:
    """Return the columns that each read takes of its table."""
    columns: dict[TableName, set[frozenset[str]]] = {}
    for rel in walk(root):
        if kind(rel) == "read":
            columns.setdefault(table_name(rel), set()).add(naming.columns_read(rel))
    return columns


def tables(root: Rel) -> list[TableName]:
    """Return the table of each read."""
    return [table_name(rel) for rel in walk(root) if kind(rel) == "read"]


def is_row_by_row(root: Rel) -> bool:
    """Return whether each row of the result is made from one row of a table."""
    return all(
        kind(rel) in ("read", "filter") or (kind(rel) == "project" and not has_window(rel))
        for rel in walk(root)
    )


def is_whole_table(root: Rel) -> bool:
    """Return whether the result has a row for each row of a table."""
    return is_row_by_row(root) and not any(
        kind(rel) == "filter" or rel.read.HasField("filter") for rel in walk(root)
    )
