"""One immutable text index over some rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caraway_search.analysis.analyzer import VERSION, Analyzer
from caraway_search.errors import DamagedIndexError, InvalidSearchError
from caraway_search.hits import Hits
from caraway_search.packing import Packed, pack, unpack
from caraway_search.queries.tree import QueryNode, counted, leaves
from caraway_search.selecting import best
from caraway_search.text.postings import Postings
from caraway_search.text.pruning import candidates
from caraway_search.text.scoring import Scored, columns_of, score
from caraway_search.text.statistics import ColumnStatistics, TextStatistics

Flags = NDArray[np.bool_]
_KIND = "text"


@dataclass(frozen=True, slots=True)
class TextIndexSpec:
    """The columns of a text index with the weights of their scores, and the language."""

    boosts: Mapping[str, float]
    language: str = "english"

    def __post_init__(self) -> None:
        for name, boost in self.boosts.items():
            if not 0 < boost < 1e6:
                raise InvalidSearchError(f"column {name!r}: boost {boost} is not above 0")
        Analyzer(self.language)

    @property
    def analyzer(self) -> Analyzer:
        """The analysis of texts and queries."""
        return Analyzer(self.language)


@dataclass(frozen=True)
class TextSegment:
    """Postings of the columns of some rows. All methods count rows from 0."""

    spec: TextIndexSpec
    row_count: int
    postings: Mapping[str, Postings]

    @classmethod
    def build(cls, spec: TextIndexSpec, columns: Mapping[str, object]) -> Self:
        """Index string arrays of Arrow of one length, by column."""
        analyzer = spec.analyzer
        postings = {name: Postings.build(columns[name], analyzer) for name in spec.boosts}
        (row_count,) = {len(each.lengths) for each in postings.values()}
        for each in postings.values():
            each.prepare()
        return cls(spec, row_count, postings)

    def packed(self) -> bytes:
        """The serialised form."""
        names = list(self.postings)
        arrays = [p for n, name in enumerate(names) for p in self.postings[name].arrays(f"{n}.")]
        attributes = {
            "analysis": VERSION,
            "language": self.spec.language,
            "boosts": [self.spec.boosts[name] for name in names],
            "columns": names,
            "rows": self.row_count,
        }
        return pack(_KIND, Packed(attributes, dict(arrays)))

    @classmethod
    def opened(cls, block: object) -> Self:
        """The segment of a serialised form, whose arrays stay where they are.

        Raises:
            DamagedIndexError: the bytes are damaged, or made by another version of the analysis.
        """
        packed = unpack(_KIND, block)
        attributes = packed.attributes
        if attributes["analysis"] != VERSION:
            raise DamagedIndexError(f"terms of analysis {attributes['analysis']}, not {VERSION}")
        names = attributes["columns"]
        spec = TextIndexSpec(
            dict(zip(names, attributes["boosts"], strict=True)), attributes["language"]
        )
        postings = {name: Postings.opened(packed.arrays, f"{n}.") for n, name in enumerate(names)}
        return cls(spec, attributes["rows"], postings)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return sum(array.nbytes for each in self.postings.values() for _, array in each.arrays(""))

    def statistics(self, query: QueryNode, live: Flags | None = None) -> TextStatistics:
        """Return the statistics of a query over these rows, or over those of `live`."""
        sought = dict.fromkeys(each for leaf in leaves(query) for each in counted(leaf))
        return TextStatistics(
            {
                name: ColumnStatistics(
                    _count(postings.filled, live),
                    _token_count(postings, live),
                    {each: _row_count(postings.postings_of(each).rows, live) for each in sought},
                )
                for name, postings in self.postings.items()
            }
        )

    def scores(self, query: QueryNode, statistics: TextStatistics) -> Scored:
        """Score all rows, with the statistics of the whole table."""
        columns = columns_of(self.postings, self.spec.boosts, statistics)
        return score(query, columns, self.row_count)

    def search(
        self, query: QueryNode, statistics: TextStatistics, limit: int, mask: Flags | None = None
    ) -> Hits:
        """Return the best rows of those in `mask`, and all rows that tie with the last."""
        columns = columns_of(self.postings, self.spec.boosts, statistics)
        if scored_rows := candidates(query, columns, self.row_count, limit, mask):
            rows, scores = scored_rows.rows, scored_rows.scores
        else:
            scored = score(query, columns, self.row_count)
            rows = np.flatnonzero(scored.found if mask is None else scored.found & mask)
            scores = scored.scores[rows]
        kept = best(scores, limit)
        return Hits(rows[kept], scores[kept])


def _count(flags: Flags, live: Flags | None) -> int:
    return int(np.count_nonzero(flags if live is None else flags & live))


def _token_count(postings: Postings, live: Flags | None) -> int:
    if live is None:
        return postings.token_count
    return int(postings.lengths[live].sum(dtype=np.int64))


def _row_count(rows: NDArray[Any], live: Flags | None) -> int:
    return len(rows) if live is None else int(np.count_nonzero(live[rows]))
