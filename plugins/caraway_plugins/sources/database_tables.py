"""The bases of what creates a table of a database with its rows, and of what drops one."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_writes import DatabaseWrite

types = pa.types


class TypeNames(NamedTuple):
    """The names of types in a database, and the most digits of its decimals."""

    names: Mapping[pa.DataType, str]
    most_digits: int
    has_lists: bool = False

    def name_of(self, type_: pa.DataType) -> str | None:
        """Return the name of a type; None: the database has none with the same values."""
        if types.is_decimal(type_):
            is_kept = 0 <= type_.scale <= type_.precision <= self.most_digits
            return f"DECIMAL({type_.precision},{type_.scale})" if is_kept else None
        if self.has_lists and (types.is_list(type_) or types.is_large_list(type_)):
            item = self.name_of(type_.value_type)
            return item and f"{item}[]"
        return self.names.get(type_)


class NewTable:
    """The columns of a table that is created, in SQL."""

    def __init__(
        self,
        definition: TableDefinition,
        columns: pa.Schema,
        names: TypeNames,
        quoted: Callable[[str], str],
    ) -> None:
        """Take what spells types and names.

        Raises:
            InvalidQueryError: the database has no type for a column.
        """
        self._quoted = quoted
        self._key = definition.primary_key
        self._required = frozenset(definition.required) | {*definition.primary_key}
        self._types = {}
        for each in columns:
            name = names.name_of(each.type)
            if name is None:
                raise InvalidQueryError(
                    f"{definition.verb} of {definition.table.title} failed: it has no type that "
                    f"keeps column '{each.name}', which is {each.type}; cast it; nothing was "
                    "created"
                )
            self._types[each.name] = name

    def sql(self, relation: str, key_names: Mapping[str, str] | None = None) -> str:
        """Return the statement. Types of the key may have other names."""
        others = key_names or {}
        parts = []
        for name, type_ in self._types.items():
            used = others.get(type_, type_) if name in self._key else type_
            null = "NOT NULL" if name in self._required else "NULL"
            parts.append(f"{self._quoted(name)} {used} {null}")
        if self._key:
            parts.append(f"PRIMARY KEY ({', '.join(map(self._quoted, self._key))})")
        return f"CREATE TABLE {relation} ({', '.join(parts)})"


class DefinitionWrite(DatabaseWrite):
    """A statement that creates or drops a table, whole or not at all."""

    @property
    def _nothing(self) -> str:
        return f"nothing was {self.done}"


class TableCreation(DefinitionWrite):
    """An INSERT whose transaction begins with the table."""

    verb = "CREATE TABLE of"
    done = "created"
    subject = "it was committed; look whether the table is"
    _new: NewTable

    def _prepare(self) -> None:
        self._run(self._new.sql(self._relation))


class TableDrop(DefinitionWrite):
    """A DROP TABLE, which is refused where others depend on the table."""

    verb = "DROP TABLE of"
    done = "dropped"
    subject = "it was committed; look whether the table is"

    def __init__(self, table: RemoteTable) -> None:
        """Take the table that is dropped."""
        super().__init__(table)

    def write_rows(self) -> int:
        """See `RemoteChange.write_rows`."""
        return self._committed(self._dropped)

    def _dropped(self) -> int:
        self._run(f"DROP TABLE {self._relation}")
        return 0
