"""The statistics of a query as numbers that add up, for values that cross to other processes."""

from collections.abc import Sequence

from caraway_search.errors import InvalidSearchError
from caraway_search.queries.tree import CountedTerm, QueryNode, counted, leaves
from caraway_search.text.statistics import ColumnStatistics, TextStatistics


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
