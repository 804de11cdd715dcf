"""Columns of a source that changed: what may go on, and what must be loaded again."""

import pyarrow as pa
import pytest

from caraway_acceleration.recipes import columns
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName

T = TableName("orders")


def schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(types)


BASE = schema(id=pa.int64(), name=pa.string())


@pytest.mark.parametrize(
    "source",
    [
        BASE,
        schema(name=pa.string(), id=pa.int64()),
        schema(id=pa.int64(), name=pa.string(), more=pa.int8()),
    ],
)
def test_source_with_all_columns_is_taken_in_any_order(source: pa.Schema) -> None:
    columns.check_there(T, source, BASE)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (schema(id=pa.int64()), ["name"]),
        (schema(ID=pa.int64(), Name=pa.string()), ["id", "name"]),
        (schema(), ["id", "name"]),
    ],
)
def test_missing_columns_are_all_named_with_the_remedy(
    source: pa.Schema, missing: list[str]
) -> None:
    with pytest.raises(DatasetError) as raised:
        columns.check_there(T, source, BASE)
    assert raised.value.type == "schema"
    assert all(f"'{name}'" in raised.value.message for name in missing)
    assert "'orders'" in raised.value.message and "full" in raised.value.message


def test_column_of_a_key_that_is_not_there_is_told_with_those_that_are() -> None:
    columns.check_named(T, BASE, "sort_by", ("name", "id"))
    columns.check_named(T, BASE, "sort_by", ())
    with pytest.raises(DatasetError, match=r"`sort_by` .*'ID'.*id, name"):
        columns.check_named(T, BASE, "sort_by", ("id", "ID"))


TEXT = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
NUMBER = (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(10, 2))
TIME = (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us", tz="UTC"))
OTHER = (
    pa.bool_(),
    pa.binary(),
    pa.list_(pa.int8()),
    pa.list_(pa.int16()),
    pa.struct({"a": pa.int8()}),
)
KINDS = {
    type_: kind
    for kind, types in (("text", TEXT), ("number", NUMBER), ("time", TIME))
    for type_ in types
} | {type_: str(type_) for type_ in OTHER}


@pytest.mark.parametrize("before", KINDS, ids=str)
def test_column_may_change_within_its_kind_only(before: pa.DataType) -> None:
    for made, kind in KINDS.items():
        loaded, appended = schema(id=pa.int64(), c=before), schema(c=made, id=pa.int64())
        if kind == KINDS[before]:
            columns.check_kept(T, loaded, appended)
            continue
        with pytest.raises(DatasetError) as raised:
            columns.check_kept(T, loaded, appended)
        assert "'c'" in raised.value.message and str(made) in raised.value.message
