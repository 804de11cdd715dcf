"""Values of partitions: from the texts of folders to Avro and to bounds."""

import io
from datetime import date
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_plugins.iceberg.column_types import IcebergField, NoIcebergTypeError
from caraway_plugins.iceberg.partitioning import PartitionField, PartitionSpec


def field(type_: str, arrow: pa.DataType, name: str = "p") -> PartitionField:
    return PartitionField(1000, IcebergField(3, name, type_), arrow)


CASES = [
    ("boolean", pa.bool_(), "true", True, b"\x01"),
    ("int", pa.int32(), "-7", -7, (-7).to_bytes(4, "little", signed=True)),
    ("long", pa.int64(), "9223372036854775807", 2**63 - 1, b"\xff" * 7 + b"\x7f"),
    ("double", pa.float64(), "1.5", 1.5, b"\x00\x00\x00\x00\x00\x00\xf8\x3f"),
    ("string", pa.string(), "ä", "ä", "ä".encode()),
    ("date", pa.date32(), "1970-01-02", date(1970, 1, 2), b"\x01\x00\x00\x00"),
]


@pytest.mark.parametrize(("type_", "arrow", "text", "value", "bound"), CASES)
def test_a_text_of_a_folder_is_a_value(
    type_: str, arrow: pa.DataType, text: str, value: object, bound: bytes
) -> None:
    column = field(type_, arrow)
    assert column.value(text) == value
    assert column.bound(value, False) == bound
    assert column.value(None) is None


@pytest.mark.parametrize(("type_", "arrow", "text", "value", "bound"), CASES)
def test_values_are_read_again_by_another_reader_of_avro(
    type_: str, arrow: pa.DataType, text: str, value: object, bound: bytes
) -> None:
    first, second = field(type_, arrow, "a"), field(type_, arrow, "b")
    spec = PartitionSpec((first, second))
    written = spec.record({"a": value, "b": None})
    schema: Any = {"type": "record", "name": "r", "fields": [each.avro() for each in spec.fields]}
    assert fastavro.schemaless_reader(io.BytesIO(written), schema) == {"a": value, "b": None}


@pytest.mark.parametrize(
    ("type_", "arrow", "text"),
    [
        ("int", pa.int32(), "x"), ("int", pa.int32(), "2147483648"), ("long", pa.int64(), "1.5"),
        ("boolean", pa.bool_(), "maybe"), ("date", pa.date32(), "2023-02-29"),
        ("int", pa.int32(), ""),
    ],
)  # fmt: skip
def test_a_text_that_is_no_value_is_an_error(type_: str, arrow: pa.DataType, text: str) -> None:
    with pytest.raises(NoIcebergTypeError, match=f"'{text}' is no {type_} for column 'p'"):
        field(type_, arrow).value(text)


def test_a_spec_has_its_columns_in_order() -> None:
    spec = PartitionSpec((field("int", pa.int32(), "a"), field("string", pa.string(), "b")))
    assert spec.values(["1", None]) == {"a": 1, "b": None}
    assert [each["name"] for each in spec.document()["fields"]] == ["a", "b"]
    assert (spec.last_id, PartitionSpec().last_id) == (1001, 999)
    with pytest.raises(ValueError, match="zip"):
        spec.values(["1"])
