"""A search: the values that HTTP, SQL and tools share."""

from dataclasses import dataclass
from enum import StrEnum

from caraway_core.ids import TableName

VECTOR_SEARCH, TEXT_SEARCH, RRF, RERANK = FUNCTIONS = (
    "vector_search",
    "text_search",
    "rrf",
    "rerank",
)
"""The table functions of search."""
MOST_HITS = 1000
"""The most rows that one search returns."""
RRF_K = 60.0
"""The constant of reciprocal rank fusion."""


class SearchMethod(StrEnum):
    """The ranking of rows."""

    VECTOR = "vector"
    TEXT = "text"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class TableSearch:
    """A search of one table.

    `column` is the searched one; None: the only one that can be searched by this method. `where`
    is a SQL predicate over the columns of the table: only rows that pass are ranked. It may name
    columns as `column` or as `table.column`, with the bare name of the table. The answer has the
    `columns`, in this order, and `score`, best first; ties are in the order of the key.
    """

    table: TableName
    text: str
    method: SearchMethod
    column: str | None = None
    keywords: tuple[str, ...] = ()
    where: str | None = None
    columns: tuple[str, ...] = ()
    limit: int = 10
