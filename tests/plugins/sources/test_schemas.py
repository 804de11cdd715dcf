"""The type of a column that several files have."""

from itertools import permutations

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources import schemas
from caraway_plugins.sources.schemas import NamedSchema

S, DAY = pa.string(), pa.date32()


def merged(*types: pa.DataType, text_on_conflict: bool = False) -> pa.DataType:
    """Return the type of column `c` over one file per type."""
    files = [
        NamedSchema(f"{number}.parquet", pa.schema([("c", type_)]))
        for number, type_ in enumerate(types)
    ]
    return schemas.merge(files, text_on_conflict).field("c").type


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ((pa.int8(), pa.int64()), pa.int64()),
        ((pa.uint8(), pa.uint32()), pa.uint32()),
        ((pa.int8(), pa.uint8()), pa.int16()),
        ((pa.int64(), pa.uint32()), pa.int64()),
        ((pa.int8(), pa.uint64()), pa.decimal128(20, 0)),
        ((pa.float16(), pa.float32()), pa.float32()),
        ((pa.float32(), pa.int8()), pa.float64()),
        ((pa.float32(), pa.decimal128(9, 2)), pa.float64()),
        ((pa.int8(), pa.decimal128(9, 2)), pa.decimal128(22, 2)),
        ((pa.decimal128(9, 2), pa.decimal128(9, 4)), pa.decimal128(11, 4)),
        ((pa.decimal128(38, 0), pa.decimal128(38, 10)), pa.decimal256(48, 10)),
        ((pa.decimal256(76, 0), pa.decimal256(76, 10)), pa.float64()),
        ((DAY, pa.date64()), pa.date64()),
        ((DAY, pa.timestamp("ms")), pa.timestamp("ms")),
        ((pa.timestamp("s", "UTC"), pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),
        ((pa.null(), pa.int8(), pa.null()), pa.int8()),
        ((S, pa.large_string(), pa.string_view()), S),
        ((pa.dictionary(pa.int8(), pa.large_string()), S), S),
        ((pa.binary(), pa.large_binary(), pa.binary_view()), pa.binary()),
        ((pa.list_(pa.int8()), pa.large_list(pa.int32())), pa.list_(pa.int32())),
        ((pa.list_(pa.null()), pa.list_(pa.large_string())), pa.list_(S)),
        ((pa.struct([("a", S)]), pa.struct([("a", pa.large_string())])), pa.struct([("a", S)])),
        (
            (pa.struct([("a", pa.dictionary(pa.int8(), S))]), pa.struct([("a", S)])),
            pa.struct([("a", S)]),
        ),
    ],
    ids=str,
)
def test_all_orders_of_files_give_the_narrowest_type(
    types: tuple[pa.DataType, ...], wanted: pa.DataType
) -> None:
    assert {merged(*each) for each in permutations(types)} == {wanted}


def test_fields_of_structs_come_from_all_files() -> None:
    one, two = pa.struct([("a", pa.int8())]), pa.struct([("b", S), ("a", pa.int32())])
    assert merged(one, two) == pa.struct([("a", pa.int32()), ("b", S)])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int8(), S),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("s"), pa.timestamp("s", "UTC")),
        (pa.list_(S), S),
        (pa.list_(S), pa.list_(pa.int8())),
        (pa.struct([("a", S)]), pa.struct([("a", pa.int8())])),
        (pa.struct([("a", S)]), pa.list_(S)),
    ],
    ids=str,
)
def test_types_that_exclude_each_other_are_named(left: pa.DataType, right: pa.DataType) -> None:
    with pytest.raises(DatasetError) as caught:
        merged(left, right)
    assert f"column 'c' is {right} in '1.parquet' and {left} in" in caught.value.message
    assert "declare its type under `columns`" in caught.value.message


def test_text_holds_what_else_would_conflict_unless_it_is_nested() -> None:
    assert merged(pa.int8(), S, text_on_conflict=True) == S
    assert merged(pa.bool_(), DAY, text_on_conflict=True) == S
    with pytest.raises(DatasetError, match="neither type can hold the other"):
        merged(pa.list_(S), S, text_on_conflict=True)


def test_columns_keep_the_order_in_which_they_appear() -> None:
    files = [
        NamedSchema("1", pa.schema([("b", S), ("a", S)])),
        NamedSchema("2", pa.schema([("c", S), ("a", S)])),
    ]
    assert schemas.merge(files, text_on_conflict=False).names == ["b", "a", "c"]


def test_columns_without_values_are_text() -> None:
    nested = pa.struct([("a", pa.null()), ("b", pa.list_(pa.null()))])
    found = schemas.finished(pa.schema([("c", pa.null()), ("d", nested), ("e", pa.int8())]))
    assert found.types == [S, pa.struct([("a", S), ("b", pa.list_(S))]), pa.int8()]


def test_declared_columns_override_and_are_added() -> None:
    found = schemas.overridden(
        pa.schema([("a", S), ("b", S)]), [pa.field("b", pa.int8()), pa.field("z", DAY)]
    )
    assert found == pa.schema([("a", S), ("b", pa.int8()), ("z", DAY)])


def test_text_is_read_as_views_and_lists_lose_their_size() -> None:
    found = schemas.viewed(
        pa.schema(
            [("s", S), ("b", pa.binary()), ("l", pa.list_(pa.float32(), 3)), ("i", pa.int8())]
        )
    )
    assert found.types == [
        pa.string_view(), pa.binary_view(), pa.list_(pa.float32()), pa.int8(),
    ]  # fmt: skip
