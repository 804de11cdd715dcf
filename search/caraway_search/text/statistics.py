"""The statistics of a table that scores need: integers that are summed over its segments."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from caraway_search.queries.tree import CountedTerm


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
