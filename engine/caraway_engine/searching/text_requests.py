"""A search in texts, in the form in which it crosses to engines: a constant of SQL."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from caraway_search.queries.parsing import parse
from caraway_search.queries.tree import CountedTerm, QueryNode, counted, leaves
from caraway_search.text.segment import TextIndexSpec
from caraway_search.text.statistics import ColumnStatistics, TextStatistics


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A query over columns, which stand for their places in the rows that are searched.

    `statistics` are those of the whole table, see `statistics_of`; empty where they are not needed.
    """

    text: str
    language: str
    boosts: tuple[float, ...]
    statistics: tuple[int, ...] = ()

    def encoded(self) -> str:
        """Return the request as text."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def decoded(cls, text: str | None) -> Self:
        """Return the request of a text.

        Raises:
            ValueError: the text is not one of `encoded`.
        """
        try:
            found = json.loads(text or "")
            boosts, statistics = tuple(found.pop("boosts")), tuple(found.pop("statistics"))
            return cls(**found, boosts=boosts, statistics=statistics)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as exc:
            raise ValueError("the query of a search is an encoded request") from exc

    def with_statistics(self, statistics: Sequence[int]) -> Self:
        """Return the request with the statistics of the table."""
        return replace(self, statistics=tuple(statistics))

    @property
    def spec(self) -> TextIndexSpec:
        """Return the spec of an index over the columns."""
        return TextIndexSpec(dict(zip(self.columns, self.boosts, strict=True)), self.language)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names by which statistics and segments know the columns."""
        return tuple(map(str, range(len(self.boosts))))

    @property
    def query(self) -> QueryNode:
        """The query in terms of the language."""
        return _parsed(self.text, self.language)

    @property
    def sought(self) -> tuple[CountedTerm, ...]:
        """Return the counted terms of the query, in the order of the statistics."""
        found = (each for leaf in leaves(self.query) for each in counted(leaf))
        return tuple(dict.fromkeys(found))

    def packed(self, statistics: TextStatistics) -> tuple[int, ...]:
        """Return statistics as numbers that add up: rows, tokens and frequencies by column."""
        found = []
        for name in self.columns:
            column = statistics.columns[name]
            found += [column.rows, column.tokens]
            found += [column.frequencies.get(each, 0) for each in self.sought]
        return tuple(found)

    @property
    def table_statistics(self) -> TextStatistics:
        """The statistics of the whole table.

        Raises:
            ValueError: the request has no statistics of these columns and this query.
        """
        sought = self.sought
        width = len(sought) + 2
        if len(self.statistics) != width * len(self.columns):
            raise ValueError("the statistics of a search are not those of its query")
        parts = [
            self.statistics[place * width : (place + 1) * width]
            for place in range(len(self.columns))
        ]
        return TextStatistics(
            {
                name: ColumnStatistics(part[0], part[1], dict(zip(sought, part[2:], strict=True)))
                for name, part in zip(self.columns, parts, strict=True)
            }
        )


@functools.lru_cache(maxsize=64)
def _parsed(text: str, language: str) -> QueryNode:
    return parse(text, TextIndexSpec({"0": 1.0}, language).analyzer)
