"""Limits what a statement can see while it is planned.

The sources behind accelerated datasets are tables of a separate schema. The runtime reads them; for
users' statements they do not exist, however their names are written. System tables show the rows
that the statement's viewer may see. A statement that is limited to some tables finds no others.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

import pyarrow as pa
from datafusion.catalog import SchemaProvider, Table

from caraway_core.ids import PrincipalId, TableName
from caraway_core.manifest.texts.names import SOURCE_SCHEMA
from caraway_core.statements import Statement, SystemTable
from caraway_engine.statements.table_schemas import TableSchema

_NOTHING: frozenset[TableName] = frozenset()
_sources: ContextVar[frozenset[TableName] | None] = ContextVar("caraway-sources", default=None)
_viewer: ContextVar[PrincipalId | None] = ContextVar("caraway-viewer", default=None)
_readable: ContextVar[frozenset[TableName] | None] = ContextVar("caraway-readable", default=None)


@contextmanager
def limits_of(statement: Statement) -> Iterator[None]:
    """Plan with a statement's limits. The engine looks names up in the thread that plans."""
    sources, viewer = _sources.set(statement.sources), _viewer.set(statement.viewer)
    readable = _readable.set(statement.readable)
    try:
        yield
    finally:
        _sources.reset(sources)
        _viewer.reset(viewer)
        _readable.reset(readable)


@contextmanager
def without_sources() -> Iterator[None]:
    """Plan as for a user, who can see no sources."""
    sources = _sources.set(_NOTHING)
    try:
        yield
    finally:
        _sources.reset(sources)


@contextmanager
def with_sources() -> Iterator[None]:
    """Plan SQL that the runtime generated, which may read every source."""
    sources = _sources.set(None)
    try:
        yield
    finally:
        _sources.reset(sources)


@contextmanager
def with_every_table() -> Iterator[None]:
    """Plan the SQL of a view, which may read tables that a statement may not name itself."""
    readable = _readable.set(None)
    try:
        yield
    finally:
        _readable.reset(readable)


def is_readable(name: TableName) -> bool:
    """Return whether the statement that is planned may name a table or view."""
    readable = _readable.get()
    return readable is None or name in readable


def is_source(name: str) -> bool:
    """Return whether a name is that of a source behind an accelerated dataset."""
    return name.startswith(f"{SOURCE_SCHEMA}.")


class DatasetSchema(TableSchema):
    """The datasets and views of one schema: a statement finds those that it may read."""

    def __init__(self, prefix: str = "", tables: dict[str, Table] | None = None) -> None:
        """Take what stands before a table's own name in the manifest, with its dot."""
        super().__init__(tables)
        self._prefix = prefix

    def copy(self) -> Self:
        """Return a schema with the same tables, which can be changed independently."""
        return type(self)(self._prefix, dict(self._tables))

    @property
    def table_names(self) -> list[str]:
        """The names of the tables that the statement may read."""
        return sorted(filter(self._may_read, self._tables))

    def table(self, name: str) -> Table | None:
        """Return a table that the statement may read, or None."""
        return self._tables.get(name) if self._may_read(name) else None

    def table_exist(self, name: str) -> bool:
        """Return whether a table exists and the statement may read it."""
        return name in self._tables and self._may_read(name)

    def _may_read(self, name: str) -> bool:
        return is_readable(TableName(f"{self._prefix}{name}"))


class CatalogSchema(DatasetSchema):
    """A schema of another catalog: it is not listed, as it has only the tables that are in use."""

    @property
    def table_names(self) -> list[str]:
        """The listed tables: none."""
        return []


class SourceSchema(TableSchema):
    """The sources behind accelerated datasets: not listed, and only permitted ones are found."""

    @property
    def table_names(self) -> list[str]:
        """The listed tables: none."""
        return []

    def table(self, name: str) -> Table | None:
        """Return a source that the statement may read, or None."""
        return self._tables.get(name) if _may_name(name) else None

    def table_exist(self, name: str) -> bool:
        """Return whether a source exists and the statement may read it."""
        return name in self._tables and _may_name(name)


class SystemSchema(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """The `runtime` schema: each lookup builds the table from the current state."""

    def __init__(self, system: Mapping[TableName, SystemTable]) -> None:
        self._system = system

    @property
    def owner_name(self) -> str | None:
        """Return None: the schema has no owner."""
        return None

    @property
    def table_names(self) -> list[str]:
        """The names of all system tables."""
        return sorted(self._system)

    def table(self, name: str) -> Table | None:
        """Build a system table for the current viewer, or return None."""
        make = self._system.get(TableName(name))
        return Table(_dataset(make(_viewer.get()))) if make else None

    def table_exist(self, name: str) -> bool:
        """Return whether a system table exists."""
        return name in self._system


# Any: pyarrow has no types.
def _dataset(rows: pa.Table) -> object:
    import pyarrow.dataset as ds  # Slow to import; few statements need it.

    if rows.num_rows:
        return ds.dataset(rows)
    # A dataset in memory without rows has no fragments, and DataFusion cannot sort those.
    sink = pa.BufferOutputStream()
    pa.ipc.new_file(sink, rows.schema).close()
    file = ds.IpcFileFormat()
    return ds.FileSystemDataset([file.make_fragment(sink.getvalue())], rows.schema, file)


def _may_name(name: str) -> bool:
    sources = _sources.get()
    return sources is None or TableName(f"{SOURCE_SCHEMA}.{name}") in sources
