"""Rows in the three forms of JSON, in any number of batches."""

import json
from typing import Any

import pyarrow as pa
import pytest

from caraway_serving.formats.rows import JsonArray, JsonLines, VersionedJson

SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("xs", pa.list_(pa.int8()))
])  # fmt: skip
ROWS = [
    {"id": 1, "name": 'a"\n\u2028', "xs": [1, None]},
    {"id": 2**53 - 1, "name": None, "xs": None},
    {"id": -1, "name": "😀", "xs": []},
]
SPLITS = [[], [0], [3], [1, 2], [0, 1, 0, 2, 0]]


def encoded(encoder: Any, sizes: list[int]) -> bytes:
    parts, start = [encoder.encode_start(SCHEMA)], 0
    for size in sizes:
        rows = ROWS[start : start + size]
        parts.append(encoder.encode(pa.RecordBatch.from_pylist(rows, schema=SCHEMA)))
        start += size
    return b"".join([*parts, encoder.end(7)])


@pytest.mark.parametrize("sizes", SPLITS)
def test_arrays(sizes: list[int]) -> None:
    assert json.loads(encoded(JsonArray(), sizes)) == ROWS[: sum(sizes)]


@pytest.mark.parametrize("sizes", SPLITS)
def test_lines(sizes: list[int]) -> None:
    lines = encoded(JsonLines(), sizes).decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(each) for each in lines] == ROWS[: sum(sizes)]


@pytest.mark.parametrize("sizes", SPLITS)
def test_versioned(sizes: list[int]) -> None:
    found = json.loads(encoded(VersionedJson(), sizes))
    assert found["data"] == ROWS[: sum(sizes)]
    assert (found["row_count"], found["execution_time_ms"]) == (sum(sizes), 7)
    fields = {each["name"]: each for each in found["schema"]["fields"]}
    assert list(fields) == SCHEMA.names
    assert [each["nullable"] for each in fields.values()] == [False, True, True]
    assert fields["id"]["data_type"] == "Int64"


def test_nulls_are_written() -> None:
    batch = pa.RecordBatch.from_pylist([ROWS[1]], schema=SCHEMA)
    lines = JsonLines()
    lines.encode_start(SCHEMA)
    assert b'"name":null' in lines.encode(batch)
