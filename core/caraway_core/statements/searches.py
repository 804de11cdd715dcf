"""The searches that a SQL statement calls for: values that cross between planner and scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.sqltext.searching import MOST_HITS, RRF_K, TableSearch
from caraway_core.statements import Scalar

SCORE, FUSED_SCORE, RERANK_SCORE = "score", "fused_score", "rerank_score"


@dataclass(frozen=True, slots=True)
class RecencyDecay:
    """The decay of the fused score of a row by its age; see `recency_decay` of rrf."""

    column: str
    kind: Literal["exponential", "linear"] = "exponential"
    constant: float = 0.01
    scale_s: float = 86400.0
    window_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class WeightedSearch:
    """One search of a fusion."""

    search: TableSearch
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class FusedSearches:
    """Searches of one table whose ranks are fused. Rows are the same where `key` is the same."""

    searches: tuple[WeightedSearch, ...]
    key: tuple[str, ...]
    k: float = RRF_K
    decay: RecencyDecay | None = None


@dataclass(frozen=True, slots=True)
class RerankedRows:
    """The rows of a statement, ordered by how well the text in `column` answers the query."""

    sql: str
    parameters: Mapping[str, Scalar] = field(repr=False)
    query: str
    column: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StatementSearch:
    """A call of a table function: the statement reads its rows as the table `name`.

    The rows have the `columns`, then the score, if it has a name. The table has all columns of
    `schema`.
    """

    name: TableName
    schema: pa.Schema = field(repr=False)
    work: TableSearch | FusedSearches | RerankedRows
    columns: tuple[str, ...]
    score: str | None = SCORE
    limit: int = MOST_HITS
