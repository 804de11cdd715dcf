"""Arrow columns become Iceberg columns, or are refused by name."""

import pyarrow as pa
import pytest

from caraway_plugins.iceberg import column_types
from caraway_plugins.iceberg.column_types import NoIcebergTypeError

HELD = {
    "boolean": [pa.bool_()],
    "int": [pa.int8(), pa.int16(), pa.int32()],
    "long": [pa.int64()],
    "float": [pa.float32()],
    "double": [pa.float64()],
    "decimal(12, 2)": [pa.decimal128(12, 2), pa.decimal256(12, 2)],
    "date": [pa.date32()],
    "time": [pa.time64("us")],
    "timestamp": [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")],
    "timestamptz": [pa.timestamp("us", "UTC"), pa.timestamp("ns", "+00:00")],
    "string": [pa.string(), pa.large_string(), pa.string_view()],
    "binary": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "fixed[4]": [pa.binary(4)],
}
REFUSED = [
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.decimal256(40, 2),
    pa.date64(),
    pa.time32("ms"),
    pa.time64("ns"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.duration("us"),
    pa.month_day_nano_interval(),
    pa.null(),
]


def test_each_type_has_its_own_in_iceberg() -> None:
    for wanted, arrow in HELD.items():
        assert {column_types.kind(each) for each in arrow} == {wanted}
    assert column_types.kind(pa.dictionary(pa.int8(), pa.string())) == "string"


def test_types_without_one_are_refused_and_all_are_named() -> None:
    columns = pa.schema([("good", pa.int64()), *((f"c{n}", t) for n, t in enumerate(REFUSED))])
    with pytest.raises(NoIcebergTypeError) as refused:
        column_types.schema(columns)
    parts = str(refused.value).split("; ")
    assert parts == [f"column 'c{number}' is {type_}" for number, type_ in enumerate(REFUSED)]
    nested = pa.schema([("a", pa.list_(pa.struct([("b", pa.uint64())])))])
    with pytest.raises(NoIcebergTypeError, match=r"column 'a\.element\.b' is uint64"):
        column_types.schema(nested)


def test_every_field_has_an_id_of_its_own() -> None:
    columns = pa.schema([
        ("a", pa.int64()),
        ("b", pa.struct([("x", pa.string()), ("y", pa.list_(pa.int32()))])),
        ("c", pa.map_(pa.string(), pa.float64())),
    ])  # fmt: skip
    schema = column_types.schema(columns, docs={"a": "the first"})
    assert schema.last_id == 8
    assert schema.document() == {
        "schema-id": 0,
        "type": "struct",
        "fields": [
            {"id": 1, "name": "a", "required": False, "type": "long", "doc": "the first"},
            {
                "id": 2,
                "name": "b",
                "required": False,
                "type": {
                    "type": "struct",
                    "fields": [
                        {"id": 3, "name": "x", "required": False, "type": "string"},
                        {
                            "id": 4,
                            "name": "y",
                            "required": False,
                            "type": {
                                "type": "list",
                                "element-id": 5,
                                "element": "int",
                                "element-required": False,
                            },
                        },
                    ],
                },
            },
            {
                "id": 6,
                "name": "c",
                "required": False,
                "type": {
                    "type": "map",
                    "key-id": 7,
                    "key": "string",
                    "value-id": 8,
                    "value": "double",
                    "value-required": False,
                },
            },
        ],
    }


def test_ids_of_files_are_kept_and_others_come_after_them() -> None:
    own = pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "7"})
    inner = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "9"})
    file = pa.schema([own, pa.field("c", pa.struct([inner]))])
    ids = column_types.field_ids(file)
    assert ids == {("b",): 7, ("c", "x"): 9}
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.struct([inner]))])
    schema = column_types.schema(columns, ids)
    assert [each.id for each in schema.fields] == [10, 7, 11]
    assert [each.id for each in schema.field("c").inner] == [9]
