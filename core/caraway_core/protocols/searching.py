"""The protocol of the service that searches tables: statements, the API and tools use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from caraway_core.sqltext.searching import TableSearch
from caraway_core.statements import ReadPoint


@dataclass(frozen=True, slots=True)
class SearchWay:
    """The course of a search, for EXPLAIN: `index` is the kind of index, or "none".

    `details` are further facts, such as `probes`, by name.
    """

    column: str
    index: str = "none"
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a search: its columns and, last, `score` as a 64-bit float; best first.

    With `reads_only_catalog`, the same search finds the same rows until the catalog changes.
    """

    rows: pa.Table
    reads_only_catalog: bool = True


class SearchTables(Protocol):
    """Searches tables that can be searched."""

    async def search(self, search: TableSearch, at: ReadPoint) -> FoundRows:
        """Return the best rows, at most `limit`.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            InvalidQueryError: the table cannot be searched in this way.
            ModelError: the embedding model failed.
            QueryError: the search failed.
        """
        ...

    async def explain(self, search: TableSearch, at: ReadPoint) -> SearchWay:
        """Return how a search would run, without running it.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            InvalidQueryError: the table cannot be searched in this way.
        """
        ...
