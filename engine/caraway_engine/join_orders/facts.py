"""Facts of tables: the number of their rows, and of the values of their columns.

Facts may be wrong: then a plan takes longer, but its rows are the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from caraway_core.ids import TableName


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The number of different values of a column, and its range as numbers; None if unknown."""

    distinct: float | None = None
    least: float | None = None
    greatest: float | None = None

    def distinct_of(self, rows: float) -> float:
        """Return the number of different values among some rows, guessed if it is unknown."""
        found = max(10.0, rows ** (1 / 3)) if self.distinct is None else self.distinct
        return max(1.0, min(found, rows))

    def within(self, rows: float) -> "ColumnFacts":
        """Return the facts of the column in a part of the rows."""
        if self.distinct is None or self.distinct <= rows:
            return self
        return replace(self, distinct=rows)


@dataclass(frozen=True, slots=True)
class RowFacts:
    """The facts of a table, by the names of its columns."""

    rows: float
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)


FactsOf = Callable[[TableName], RowFacts | None]
"""Returns the facts of a table, or None if nothing is known."""
