"""Filters of a request for rows: what an API is sent, and which rows pass."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables.scanners import ColumnFilter, FilterOperator
from caraway_plugins.sources.api import filtering
from caraway_plugins.sources.api.filtering import FilterParam


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("", []),
        (" ;,\n", []),
        ("a=b", [FilterParam("a", "=", "b")]),
        ("a = b; c>=d,e <> f\ng<h", [FilterParam("a", "=", "b"), FilterParam("c", ">=", "d"),
                                    FilterParam("e", "<>", "f"), FilterParam("g", "<", "h")]),
        ("two words <= x[lte]", [FilterParam("two words", "<=", "x[lte]")]),
    ],
)  # fmt: skip
def test_params_are_written_as_comparisons(text: str, params: list[FilterParam]) -> None:
    assert list(filtering.read(text)) == params


@pytest.mark.parametrize("text", ["a", "=b", "a=", "a==b", "a=b c", "a b", "a => b"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(DatasetError, match=r"params\.filter_params has '.*'; write 'column=param'"):
        filtering.read(text)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (7, "7"),
        ("a b", "a b"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3), "2024-02-29T01:02:03Z"),
        (datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), "2024-02-29T01:02:03.000004Z"),
        (datetime(2024, 2, 29, 1, tzinfo=timezone(timedelta(hours=2))), "2024-02-28T23:00:00Z"),
    ],
)
def test_values_are_written_as_apis_read_them(value: object, written: str) -> None:
    assert filtering.written(value) == written


@pytest.mark.parametrize(
    ("filters", "sent"),
    [
        ([], {}),
        ([ColumnFilter("a", "=", 1)], {"x": "1"}),
        ([ColumnFilter("a", "<>", 1)], {}),
        ([ColumnFilter("a", ">=", 1), ColumnFilter("b", "=", 2)], {"from": "1", "y": "2"}),
        # One parameter cannot say both; the same twice is one.
        ([ColumnFilter("a", "=", 1), ColumnFilter("a", "=", 2)], {}),
        ([ColumnFilter("a", "=", 1), ColumnFilter("a", "=", 1)], {"x": "1"}),
        ([ColumnFilter("c", "=", 1), ColumnFilter("b", "=", 2)], {}),
    ],
)
def test_a_parameter_is_sent_for_one_value(
    filters: list[ColumnFilter], sent: dict[str, str]
) -> None:
    params = filtering.read("a=x; a>=from; b=y; c=y")
    assert filtering.sent(params, filters) == sent


BATCH = pa.RecordBatch.from_pydict({"n": [1, 2, None, 3], "t": ["a", None, "c", "a"]})


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ([], [1, 2, None, 3]),
        ([("n", "=", 2)], [2]),
        ([("n", "<>", 2)], [1, 3]),
        ([("n", "<", 2)], [1]),
        ([("n", "<=", 2)], [1, 2]),
        ([("n", ">", 2)], [3]),
        ([("n", ">=", 2)], [2, 3]),
        ([("n", "in", (1, 3, 9))], [1, 3]),
        ([("n", "in", ())], []),
        ([("n", "is null", None)], [None]),
        ([("t", "is not null", None)], [1, None, 3]),
        ([("t", "=", "a"), ("n", ">", 1)], [3]),
        ([("t", "=", "a"), ("n", ">", 1), ("n", "<", 3)], []),
    ],
)
def test_rows_pass_all_filters_as_in_sql(
    filters: list[tuple[str, FilterOperator, object]], numbers: list[int | None]
) -> None:
    passing = filtering.passing(BATCH, [ColumnFilter(*each) for each in filters])
    assert passing.column("n").to_pylist() == numbers
