"""Statistics of segments are summed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.errors import InvalidSearchError
from caraway_search.queries.tree import (
    Clause,
    Fuzzy,
    Group,
    Occurrence,
    Phrase,
    Prefix,
    QueryNode,
    QueryTerm,
    counted,
    leaves,
)
from caraway_search.text import statistics
from caraway_search.text.statistics import ColumnStatistics, TextStatistics

TERM = st.sampled_from(["a", "b", "c"])
LEAF = st.one_of(
    st.builds(QueryTerm, TERM),
    st.builds(Phrase, st.lists(TERM, min_size=1, max_size=3).map(tuple)),
    st.builds(Prefix, TERM, TERM),
    st.builds(Fuzzy, TERM, st.integers(1, 2)),
)
QUERY = st.recursive(
    LEAF,
    lambda inner: st.lists(st.builds(Clause, st.sampled_from(Occurrence), inner), max_size=3).map(
        lambda clauses: Group(tuple(clauses))
    ),
    max_leaves=6,
)
COLUMNS = ("title", "body")


def of(rows: int, tokens: int, **frequencies: int) -> ColumnStatistics:
    return ColumnStatistics(rows, tokens, frequencies)  # type: ignore[arg-type]  # any key will do


def test_an_average_is_never_zero() -> None:
    assert of(4, 6).average_length == 1.5
    assert of(0, 0).average_length == of(3, 0).average_length == 1.0


def test_parts_are_summed_by_column_and_term() -> None:
    merged = TextStatistics.merged(
        [
            TextStatistics({"a": of(2, 5, x=1, y=2), "b": of(1, 1)}),
            TextStatistics({"a": of(3, 4, y=1, z=0)}),
            TextStatistics({}),
        ]
    )
    assert merged == TextStatistics({"a": of(5, 9, x=1, y=3, z=0), "b": of(1, 1)})
    assert TextStatistics.merged([]) == TextStatistics({})


def drawn(query: QueryNode, draw: st.DataObject) -> TextStatistics:
    """Statistics of a segment, of which some terms are not there."""
    sought = [each for leaf in leaves(query) for each in counted(leaf)]
    small = st.integers(0, 9)
    return TextStatistics(
        {
            name: ColumnStatistics(
                draw.draw(small), draw.draw(small),
                {each: draw.draw(small) for each in sought if draw.draw(st.booleans())},
            )
            for name in COLUMNS
        }
    )  # fmt: skip


@given(QUERY, st.integers(1, 3), st.data())
def test_numbers_of_segments_add_up(query: QueryNode, count: int, draw: st.DataObject) -> None:
    segments = [drawn(query, draw) for _ in range(count)]
    packed = [statistics.packed(each, query, COLUMNS) for each in segments]
    summed = [sum(each) for each in zip(*packed, strict=True)]
    unpacked = statistics.unpacked(summed, query, COLUMNS)
    merged = TextStatistics.merged(segments)
    assert statistics.packed(unpacked, query, COLUMNS) == summed
    for name in COLUMNS:
        one, other = unpacked.columns[name], merged.columns[name]
        assert (one.rows, one.tokens) == (other.rows, other.tokens)
        for each, frequency in one.frequencies.items():
            assert other.frequencies.get(each, 0) == frequency


@pytest.mark.parametrize("wrong", [[], [1], [1] * 5, [1] * 7])
def test_numbers_of_another_query_are_refused(wrong: list[int]) -> None:
    with pytest.raises(InvalidSearchError, match="not those of its query"):
        statistics.unpacked(wrong, QueryTerm("a"), COLUMNS)


def test_the_length_of_a_text_is_never_zero() -> None:
    assert ColumnStatistics().average_length == 1.0
    assert ColumnStatistics(4, 0).average_length == 1.0
    assert ColumnStatistics(4, 6).average_length == 1.5
