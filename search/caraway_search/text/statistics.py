"""The statistics of a table that scores need: integers that are summed over its segments.

They cross to other processes as numbers that add up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from caraway_search.errors import InvalidSearchError
from caraway_search.queries.tree import CountedTerm, QueryNode, counted, leaves


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column: its rows that are not NULL, their tokens, and the rows with each sought term."""

    rows: int = 0
    tokens: int = 0
    frequencies: Mapping[CountedTerm, int] = field(default_factory=dict)

    @property
    def average_length(self) -> float:
        """The tokens of a row."""
        return self.tokens / self.rows if self.tokens else 1.0


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """The statistics of a query over some segments, or over all of a table."""

    columns: Mapping[str, ColumnStatistics]

    @classmethod
    def merged(cls, parts: Iterable["TextStatistics"]) -> Self:
        """The sums over parts."""
        rows: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        frequencies: dict[str, Counter[CountedTerm]] = {}
        for part in parts:
            for name, column in part.columns.items():
                rows[name] += column.rows
                tokens[name] += column.tokens
                frequencies.setdefault(name, Counter()).update(column.frequencies)
        return cls(
            {
                name: ColumnStatistics(rows[name], tokens[name], dict(counts))
                for name, counts in frequencies.items()
            }
        )


def packed(statistics: TextStatistics, query: QueryNode, columns: Sequence[str]) -> list[int]:
    """The numbers of each column: rows, tokens, and the rows of what the query seeks."""
    found = []
    for name in columns:
        column = statistics.columns[name]
        found += [column.rows, column.tokens]
        found += [column.frequencies.get(each, 0) for each in _sought(query)]
    return found


def unpacked(numbers: Sequence[int], query: QueryNode, columns: Sequence[str]) -> TextStatistics:
    """The statistics of numbers that `packed` made for the same query.

    Raises:
        InvalidSearchError: the numbers are those of another query.
    """
    sought = _sought(query)
    width = len(sought) + 2
    if len(numbers) != width * len(columns):
        raise InvalidSearchError("the statistics of a search are not those of its query")
    found = {}
    for place, name in enumerate(columns):
        rows, tokens, *frequencies = numbers[place * width : (place + 1) * width]
        found[name] = ColumnStatistics(rows, tokens, dict(zip(sought, frequencies, strict=True)))
    return TextStatistics(found)


def _sought(query: QueryNode) -> list[CountedTerm]:
    return list(dict.fromkeys(each for leaf in leaves(query) for each in counted(leaf)))
