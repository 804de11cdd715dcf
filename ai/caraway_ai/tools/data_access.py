"""The access of tools and prompts to the data of a runtime; the scheduler implements it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from caraway_ai.tools.protocol import ToolCaller
from caraway_core.ids import TableName


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column of a table."""

    name: str
    data_type: str
    nullable: bool = True
    description: str | None = None
    source_type: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchedColumn:
    """A column that can be searched, and by which model if by meaning."""

    column: str
    model: str | None = None
    row_id: tuple[str, ...] = ()
    vector_size: int | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class KnownIndex:
    """An index over columns of a table."""

    columns: tuple[str, ...]
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A dataset or view of the manifest, or a table of a source catalog."""

    name: TableName
    kind: Literal["dataset", "view", "table"]
    status: str = "ready"
    description: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    may_write: bool = False
    primary_key: tuple[str, ...] = ()
    indexes: tuple[KnownIndex, ...] = ()
    vector_columns: tuple[SearchedColumn, ...] = ()
    text_columns: tuple[SearchedColumn, ...] = ()

    @property
    def is_readable(self) -> bool:
        """True if statements can read it now."""
        return self.status in ("ready", "refreshing")


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The bounds of an answer that is read."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The first rows of an answer as JSON values; with `is_truncated`, there are more."""

    rows: list[dict[str, Any]]
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class SearchAsked:
    """A search of datasets, as `POST /v1/search` takes it."""

    text: str
    datasets: tuple[str, ...] = ()
    limit: int = 10
    where: str | None = None
    additional_columns: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


class DataAccess(Protocol):
    """The data of a runtime as a caller may see it; nothing can be written through it."""

    @property
    def can_search(self) -> bool:
        """True if any table can be searched."""
        ...

    def tables(self, caller: ToolCaller) -> Sequence[KnownTable]:
        """Return the datasets and views that the caller may read."""
        ...

    def find(self, name: str, caller: ToolCaller) -> KnownTable:
        """Return the table with this name, however it is written.

        Raises:
            NotFoundError: the caller can read no such table.
        """
        ...

    async def columns(self, table: TableName, caller: ToolCaller) -> Sequence[KnownColumn]:
        """Return the columns of a table.

        Raises:
            QueryError: it cannot be read.
        """
        ...

    async def query(self, sql: str, caller: ToolCaller, limits: RowLimits) -> ReadRows:
        """Run a statement that may only read.

        Raises:
            QueryError: it is invalid, would write, reads what the caller may not, or failed.
        """
        ...

    async def bound_query(
        self, sql: str, parameters: Mapping[str, object], caller: ToolCaller, limits: RowLimits
    ) -> ReadRows:
        """Run a statement that may only read, with values for its placeholders.

        Raises:
            QueryError: as `query`.
        """
        ...

    async def search(self, asked: SearchAsked, caller: ToolCaller) -> Any:
        """Search tables, and return what `POST /v1/search` answers.

        Raises:
            CarawayError: nothing can be searched in this way, or it failed.
        """
        ...

    def components(self) -> Mapping[str, Mapping[str, str]]:
        """Return the status of every component by kind and name."""
        ...
