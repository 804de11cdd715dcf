"""Statistics of segments are summed."""

from caraway_search.text.statistics import ColumnStatistics, TextStatistics


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
