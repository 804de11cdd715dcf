"""The columns of mappings."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.sources.opensearch import mapping
from caraway_plugins.sources.opensearch.mapping import IndexMapping


@pytest.mark.parametrize(
    ("field", "type_"),
    [
        ({"type": "long"}, pa.int64()),
        ({"type": "byte"}, pa.int8()),
        ({"type": "unsigned_long"}, pa.decimal128(20, 0)),
        ({"type": "scaled_float", "scaling_factor": 100}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "binary"}, pa.binary()),
        ({"type": "keyword"}, pa.string()),
        ({"type": "text", "fields": {"raw": {"type": "keyword"}}}, pa.string()),
        ({"type": "ip"}, pa.string()),
        ({"type": "date"}, mapping.MOMENT),
        ({"type": "date", "format": "yyyy-MM-dd HH:mm:ss||epoch_millis"}, mapping.MOMENT),
        ({"type": "date", "format": "dd/MM/yyyy"}, pa.string()),
        ({"type": "date", "format": "epoch_second"}, pa.string()),
        ({"type": "date_nanos"}, pa.string()),
        ({"type": "geo_point"}, pa.string()),
        ({"type": "integer_range"}, pa.string()),
        ({"type": "knn_vector", "dimension": 3}, pa.list_(pa.float32())),
        ({"properties": {"x": {"type": "long"}}}, pa.struct({"x": pa.int64()})),
        ({"properties": {}}, pa.string()),
        ({"type": "object", "enabled": False}, pa.string()),
        ({"type": "nested", "properties": {"x": {"type": "long"}}},
         pa.list_(pa.struct({"x": pa.int64()}))),
    ],
)  # fmt: skip
def test_types(field: Any, type_: pa.DataType) -> None:
    assert IndexMapping({"f": field}).columns(frozenset()) == pa.schema({"f": type_})


def test_lists_are_those_of_the_sample() -> None:
    properties: Any = {
        "n": {"type": "long"},
        "o": {"properties": {"x": {"type": "keyword"}, "y": {"type": "long"}}},
        "place": {"type": "geo_point"},
        "v": {"type": "dense_vector"},
    }
    columns = IndexMapping(properties).columns({"n", "o", "o.x", "place", "v"})
    inner = pa.struct({"x": pa.list_(pa.string()), "y": pa.int64()})
    assert columns == pa.schema(
        {
            "n": pa.list_(pa.int64()),
            "o": pa.list_(inner),
            "place": pa.string(),
            "v": pa.list_(pa.float32()),
        }
    )


def test_fields_without_a_value_in_documents_are_no_columns() -> None:
    properties: Any = {
        "kept": {"type": "long"},
        "other": {"type": "alias", "path": "kept"},
        "made": {"type": "long", "script": {"source": "emit(1)"}},
        "vector": {"type": "knn_vector"},
        "inner": {"properties": {"a": {"type": "long"}, "b": {"type": "long"}}},
        "all": {"properties": {"a": {"type": "long"}}},
    }
    found = IndexMapping(properties, ("vec*", "inner.b", "all.*")).columns(frozenset())
    assert found == pa.schema({"kept": pa.int64(), "inner": pa.struct({"a": pa.int64()})})


def test_types_that_disagree_are_text() -> None:
    one = pa.schema({"a": pa.int32(), "b": pa.int64(), "o": pa.struct({"x": pa.int64()})})
    other = pa.schema({"b": pa.string(), "a": pa.int64(), "o": pa.struct({"y": pa.bool_()})})
    both = pa.struct({"x": pa.int64(), "y": pa.bool_()})
    assert mapping.united([one, other]) == pa.schema({"a": pa.int64(), "b": pa.string(), "o": both})


def test_dates_that_are_always_numbers() -> None:
    properties: Any = {
        "at": {"type": "date", "format": "epoch_millis"},
        "day": {"type": "date"},
        "o": {"properties": {"at": {"type": "date", "format": "epoch_millis"}}},
    }
    assert IndexMapping(properties).numbered == {"at", "o.at"}
