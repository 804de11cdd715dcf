"""The schemas in which statements find tables: all contexts of a session share them.

A table is registered once, and not in each context. The schemas of the next session begin as
copies of these, so a new catalog costs what changes in it.
"""

from typing import Self

from datafusion.catalog import SchemaProvider, Table


class TableSchema(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """Tables by their bare names."""

    def __init__(self, tables: dict[str, Table] | None = None) -> None:
        self._tables = {} if tables is None else tables

    def copy(self) -> Self:
        """Return a schema with the same tables, in which they can be replaced."""
        return type(self)(dict(self._tables))

    @property
    def owner_name(self) -> str | None:
        return None

    @property
    def table_names(self) -> list[str]:
        return sorted(self._tables)

    def table(self, name: str) -> Table | None:
        return self._tables.get(name)

    def table_exist(self, name: str) -> bool:
        return name in self._tables

    def register_table(self, name: str, table: Table) -> None:
        self._tables[name] = table

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        self._tables.pop(name, None)
