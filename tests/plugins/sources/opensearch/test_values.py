"""Values of documents for the types of columns."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.opensearch import values
from caraway_plugins.sources.opensearch.source_reader import SourceReader

MILLIS, MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")


def _value(type_: pa.DataType, source: Any, name: str = "f", **sets: Any) -> Any:
    given = {"numbered": frozenset(), "searched": frozenset(), **sets}
    reader = SourceReader([pa.field(name, type_)], title="it", **given)
    (value,) = reader.columns([source])[name]
    return value.as_py() if isinstance(value, pa.Scalar) else value


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.int64(), 12, 12),
        (pa.int64(), "12", 12),
        (pa.int64(), Decimal("12.0"), 12),
        (pa.float64(), Decimal("1.10"), 1.1),
        (pa.float64(), "1.1", 1.1),
        (pa.decimal128(9, 2), "1.10", Decimal("1.10")),
        (pa.decimal128(20, 0), 2**64 - 1, Decimal(2**64 - 1)),
        (pa.bool_(), "", False),
        (pa.bool_(), "true", True),
        (pa.binary(), "AP8=", b"\0\xff"),
        (pa.string(), "x", "x"),
        (pa.string(), Decimal("1.10"), "1.10"),
        (pa.string(), {"a": [1]}, '{"a": [1]}'),
        (pa.list_(pa.int64()), 1, [1]),
        (pa.list_(pa.int64()), [[1, "2"], [None]], [1, 2, None]),
        (pa.struct({"x": pa.int64()}), {"x": "1", "y": 2}, {"x": 1}),
        (pa.struct({"x": pa.struct({"y": pa.int64()})}), {"x.y": 1}, {"x": {"y": 1}}),
        (pa.list_(pa.struct({"x": pa.int64()})), {"x": 1}, [{"x": 1}]),
        (pa.date32(), "2024-02-29T00:00:00Z", "2024-02-29"),
        (pa.date32(), 86_400_000, "1970-01-02"),
    ],
)
def test_values(type_: pa.DataType, value: Any, expected: Any) -> None:
    found = _value(type_, {"f": value})
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-02-29T12:30:15.123456789Z", datetime(2024, 2, 29, 12, 30, 15, 123_456, UTC)),
        ("2024-02-29 12:30:15", datetime(2024, 2, 29, 12, 30, 15, 0, UTC)),
        ("2024-02-29T00:30:15+01:00", datetime(2024, 2, 28, 23, 30, 15, 0, UTC)),
        ("2024-02", datetime(2024, 2, 1, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        (2024, datetime(2024, 1, 1, tzinfo=UTC)),
        (20240, datetime(1970, 1, 1, 0, 0, 20, 240_000, UTC)),
        ("20240101", datetime(1970, 1, 1, 5, 37, 20, 101_000, UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_dates(value: Any, expected: datetime) -> None:
    assert _value(MICROS, {"f": value}) == expected


def test_dates_have_the_milliseconds_of_the_index() -> None:
    found = _value(MILLIS, {"f": "1969-12-31T23:59:59.123999Z"})
    assert found == datetime(1969, 12, 31, 23, 59, 59, 123_000, UTC)


def test_dates_that_are_always_numbers() -> None:
    found = _value(MILLIS, {"f": 2024}, numbered={"f"})
    assert found == datetime(1970, 1, 1, 0, 0, 2, 24_000, UTC)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.int64(), Decimal("12.7")),
        (pa.int64(), "x"),
        (pa.int64(), [1]),
        (pa.int64(), True),
        (pa.float64(), 2**53 + 1),
        (pa.bool_(), 1),
        (pa.bool_(), "yes"),
        (pa.binary(), "*"),
        (pa.binary(), 1),
        (pa.struct({"x": pa.int64()}), [1]),
        (MILLIS, "soon"),
        (MILLIS, 10**17),
        (MILLIS, True),
        (pa.date32(), "2024-02-29T12:00:00Z"),
    ],
)
def test_value_of_another_type_is_an_error(type_: pa.DataType, value: Any) -> None:
    with pytest.raises(DatasetError, match=r"'it' has a value in column 'f'.*declare"):
        _value(type_, {"f": value})


@pytest.mark.parametrize("value", [["x"], {"a": 1}, Decimal("1e5")])
def test_texts_that_are_searched_are_those_of_the_index(value: Any) -> None:
    with pytest.raises(DatasetError, match="declare"):
        _value(pa.string(), {"f": value}, searched={"f"})
    assert _value(pa.string(), {"f": "x"}, searched={"f"}) == "x"
    assert _value(pa.string(), {"f": True}, searched={"f"}) == "true"


@pytest.mark.parametrize(
    "source", [{"a": {"b": 1}}, {"a.b": 1}, {"a": {"c": 2}, "a.b": 1}, {"a.b": 1, "a": {"c": 2}}]
)
def test_names_of_paths(source: Any) -> None:
    assert _value(pa.int64(), source, "a.b") == 1
    assert _value(pa.struct({"b": pa.int64()}), source, "a") == {"b": 1}


def test_path_through_a_list_is_a_list() -> None:
    source = {"a": [{"b": 1}, {"c": 2}, {"b": [3, 4]}]}
    assert _value(pa.list_(pa.int64()), source, "a.b") == [1, None, 3, 4]
    assert _value(pa.int64(), {"a": 5}, "a.b") is None


def test_lists_of_a_sample() -> None:
    documents: list[Any] = [{"a": 1, "o": {"x": [1]}}, {"o.y": [], "n": [{"z": [[1]]}]}]
    assert values.lists_of(documents) == {"o.x", "o.y", "n", "n.z"}
