"""Avro that is written by hand is read by fastavro."""

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_plugins.iceberg import avro_bytes

LONGS = st.integers(-(2**63), 2**63 - 1)


def read(content: bytes, schema: Any) -> Any:
    stream = io.BytesIO(content)
    value = fastavro.schemaless_reader(stream, schema)
    assert stream.read() == b""
    return value


@given(LONGS)
def test_numbers(number: int) -> None:
    assert read(avro_bytes.long(number), "long") == number


@pytest.mark.parametrize("number", [0, -1, 1, 63, 64, -64, -65, 4095, 4096, 2**63 - 1, -(2**63)])
def test_numbers_where_their_length_changes(number: int) -> None:
    assert read(avro_bytes.long(number), "long") == number


@given(st.text(), st.binary())
def test_texts_and_bytes(text: str, binary: bytes) -> None:
    assert read(avro_bytes.text(text), "string") == text
    assert read(avro_bytes.binary(binary), "bytes") == binary


def pairs(value: str) -> Any:
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": value}]
    return ["null", {"type": "array", "items": {"type": "record", "name": "p", "fields": fields}}]


@given(st.dictionaries(st.integers(0, 5000), LONGS), st.lists(LONGS))
def test_optional_maps_and_arrays(found: dict[int, int], longs: list[int]) -> None:
    written = [{"key": key, "value": value} for key, value in found.items()]
    assert read(avro_bytes.longs_by_id(found), pairs("long")) == (written or None)
    bytes_ = {key: str(value).encode() for key, value in found.items()}
    of_bytes = [{"key": key, "value": value} for key, value in bytes_.items()]
    assert read(avro_bytes.bytes_by_id(bytes_), pairs("bytes")) == (of_bytes or None)
    array = ["null", {"type": "array", "items": "long"}]
    assert read(avro_bytes.longs(longs), array) == (longs or None)


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_a_file_has_all_records_and_its_metadata(count: int) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
    records = (avro_bytes.long(number) for number in range(count))
    content = avro_bytes.container(schema, {"format-version": "2"}, records)
    reader = fastavro.reader(io.BytesIO(content))
    assert [record["n"] for record in reader] == list(range(count))
    assert reader.metadata["format-version"] == "2"
