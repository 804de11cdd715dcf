"""The schemas in which statements find tables, shared by all contexts of a session.

A table is registered once, not in each context. The schemas of the next session start as copies of
these, so a new catalog costs only its changes.
"""

from typing import Self

from datafusion.catalog import SchemaProvider, Table


class TableSchema(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """A schema of tables by their unqualified names."""

    def __init__(self, tables: dict[str, Table] | None = None) -> None:
        self._tables = {} if tables is None else tables

    def copy(self) -> Self:
        """Return a schema with the same tables, which can be changed independently."""
        return type(self)(dict(self._tables))

    @property
    def owner_name(self) -> str | None:
        """Return None: the schema has no owner."""
        return None

    @property
    def table_names(self) -> list[str]:
        """The names of all tables."""
        return sorted(self._tables)

    def table(self, name: str) -> Table | None:
        """Return a table, or None."""
        return self._tables.get(name)

    def table_exist(self, name: str) -> bool:
        """Return whether a table exists."""
        return name in self._tables

    def register_table(self, name: str, table: Table) -> None:
        """Add or replace a table."""
        self._tables[name] = table

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        """Remove a table if it exists."""
        self._tables.pop(name, None)
