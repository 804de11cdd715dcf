"""The protocol of catalog sources: from a catalog in the manifest to its tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """One catalog as its source sees it: secrets are already filled in, so it is never printed.

    `connector` and `path` are the two halves of `from`. Relative local paths are relative to
    `base_dir`; `cache_dir` may be written to.
    """

    name: str
    connector: str
    path: str
    params: Mapping[str, str] = field(repr=False)
    base_dir: Path
    cache_dir: Path
    described: frozenset[str] = frozenset()
    """The titles of the tables that statements use. The marks of others may be empty."""
    access: Literal["read", "read_write"] = "read"

    def asked(self, path: str, table: "ListedTable | None" = None) -> SourceRequest:
        """Return the request of a dataset over a table; without one, over the whole place."""
        return SourceRequest(
            name=TableName(f"{self.name}.{table.title}" if table else self.name),
            connector=self.connector,
            path=path,
            params=self.params,
            declared=(),
            access="read",
            base_dir=self.base_dir,
            cache_dir=self.cache_dir,
        )


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table that a catalog source lists.

    `mark` is a text that changes when `resolve` would answer differently: with the columns, and
    with the rows too if these are pinned.
    """

    schema: str
    name: str
    mark: str = ""

    @property
    def title(self) -> str:
        return f"{self.schema}.{self.name}"


class CatalogSource(Protocol):
    """A kind of place that has many tables. Its methods block and may do I/O."""

    def tables(self, request: CatalogRequest) -> Iterable[ListedTable]:
        """Return the tables that the credentials may read, without tables of the system.

        The caller stops reading where there are too many.

        Raises:
            DatasetError: the place cannot be read.
        """
        ...

    def fingerprint(self, request: CatalogRequest) -> str | None:
        """Return a text that changes when `tables` would answer differently; None: unknown.

        Must be much cheaper than `tables`.

        Raises:
            DatasetError: the place cannot be read.
        """
        ...

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        """Look at a table and say what it is.

        Raises:
            DatasetError: it is gone, unreadable, refused or of no usable shape.
        """
        ...


class CreatingCatalogSource(CatalogSource, Protocol):
    """A catalog source whose tables are created and dropped by a `RemoteCreator`."""

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        """Return where a table is or will be, without its columns.

        Raises:
            DatasetError: there can be no such table.
        """
        ...
