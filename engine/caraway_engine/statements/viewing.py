"""Limits what a statement can see while it is planned.

The sources behind accelerated datasets are tables of a separate schema. The runtime reads them; for
users' statements they do not exist, however their names are written. System tables show the rows
that the statement's viewer may see.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from datafusion.catalog import SchemaProvider, Table

from caraway_core.ids import PrincipalId, TableName
from caraway_core.manifest.names import SOURCE_SCHEMA
from caraway_core.protocols.dispatch import Statement, SystemTable
from caraway_engine.statements.table_schemas import TableSchema

_NOTHING: frozenset[TableName] = frozenset()
_sources: ContextVar[frozenset[TableName] | None] = ContextVar("caraway-sources", default=None)
_viewer: ContextVar[PrincipalId | None] = ContextVar("caraway-viewer", default=None)


@contextmanager
def limits_of(statement: Statement) -> Iterator[None]:
    """Plan with a statement's limits. The engine looks names up in the thread that plans."""
    sources, viewer = _sources.set(statement.sources), _viewer.set(statement.viewer)
    try:
        yield
    finally:
        _sources.reset(sources)
        _viewer.reset(viewer)


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


def is_source(name: str) -> bool:
    """Return whether a name is that of a source behind an accelerated dataset."""
    return name.startswith(f"{SOURCE_SCHEMA}.")


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
        import pyarrow.dataset as ds  # Slow to import; few statements need it.

        make = self._system.get(TableName(name))
        return Table(ds.dataset(make(_viewer.get()))) if make else None

    def table_exist(self, name: str) -> bool:
        """Return whether a system table exists."""
        return name in self._system


def _may_name(name: str) -> bool:
    sources = _sources.get()
    return sources is None or TableName(f"{SOURCE_SCHEMA}.{name}") in sources
