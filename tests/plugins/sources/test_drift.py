"""Files of one dataset whose columns differ."""

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from tests.plugins.sources import reading, writing

Put = Callable[[str, bytes | str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def folder(tmp_path: Path, **params: str) -> reading.Dataset:
    return reading.Dataset("file", "d", tmp_path, params)


@pytest.mark.parametrize("suffix", writing.FORMATS)
def test_columns_unite_by_name_and_widen(suffix: str, put: Put, tmp_path: Path) -> None:
    write = writing.FORMATS[suffix]
    put(f"d/1{suffix}", write([{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]))
    put(f"d/2{suffix}", write([{"s": "z", "b": True, "a": 2.5}]))
    assert folder(tmp_path).rows() == [
        {"a": 1.0, "s": "x", "b": None},
        {"a": 2.0, "s": "y", "b": None},
        {"a": 2.5, "s": "z", "b": True},
    ]


@pytest.mark.parametrize("suffix", writing.FORMATS)
def test_drift_meets_partitions(suffix: str, put: Put, tmp_path: Path) -> None:
    write = writing.FORMATS[suffix]
    put(f"d/k=1/1{suffix}", write([{"a": 1, "s": "x"}]))
    put(f"d/k=2/2{suffix}", write([{"b": 2.5, "a": 3}]))
    assert folder(tmp_path).rows() == [
        {"a": 1, "s": "x", "b": None, "k": 1},
        {"a": 3, "s": None, "b": 2.5, "k": 2},
    ]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".ndjson"])
def test_text_files_fall_back_to_text(suffix: str, put: Put, tmp_path: Path) -> None:
    write = writing.FORMATS[suffix]
    put(f"d/1{suffix}", write([{"a": 1, "b": 1.5}]))
    put(f"d/2{suffix}", write([{"a": "x", "b": True}]))
    rows = folder(tmp_path).rows("SELECT a, lower(b) AS b FROM t ORDER BY 1")
    assert rows == [{"a": "1", "b": "1.5"}, {"a": "x", "b": "true"}]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".avro"])
def test_typed_files_that_conflict_are_refused(suffix: str, put: Put, tmp_path: Path) -> None:
    write = writing.FORMATS[suffix]
    put(f"d/1{suffix}", write([{"amount": 1}]))
    put(f"d/2{suffix}", write([{"amount": "x"}]))
    with pytest.raises(DatasetError, match="column 'amount' is string in") as caught:
        folder(tmp_path).resolve()
    assert caught.value.type == "schema" and f"2{suffix}" in caught.value.message


WIDENING: list[tuple[pa.Array, pa.Array, Any]] = [
    (pa.array([1], pa.int8()), pa.array([2**40]), [1, 2**40]),
    (pa.array([1], pa.uint32()), pa.array([-1], pa.int32()), [1, -1]),
    (pa.array([1], pa.uint64()), pa.array([-1]), [Decimal(1), Decimal(-1)]),
    (pa.array([1]), pa.array([0.5], pa.float32()), [1.0, 0.5]),
    (
        pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        pa.array([Decimal("0.25")], pa.decimal128(4, 2)),
        [Decimal("1.50"), Decimal("0.25")],
    ),
    (
        pa.array([date(2024, 1, 1)]),
        pa.array([datetime(2024, 1, 2, 3)], pa.timestamp("ms")),
        [datetime(2024, 1, 1), datetime(2024, 1, 2, 3)],
    ),
    (pa.array(["x"]).dictionary_encode(), pa.array(["y"], pa.large_string()), ["x", "y"]),
    (pa.array([None], pa.null()), pa.array([7]), [None, 7]),
    (
        pa.array([{"p": 1}]),
        pa.array([{"q": "x", "p": 0.5}]),
        [{"p": 1.0, "q": None}, {"p": 0.5, "q": "x"}],
    ),
    (pa.array([[1]]), pa.array([[0.5]]), [[1.0], [0.5]]),
]


@pytest.mark.parametrize(("left", "right", "expected"), WIDENING, ids=lambda value: None)
def test_parquet_types_widen(
    left: pa.Array, right: pa.Array, expected: list[Any], put: Put, tmp_path: Path
) -> None:
    put("d/1.parquet", writing.parquet_table(pa.table({"n": [1], "v": left})))
    put("d/2.parquet", writing.parquet_table(pa.table({"v": right, "n": [2]})))
    assert [row["v"] for row in folder(tmp_path).rows()] == expected


def test_csv_headers_in_another_order_make_groups(put: Put, tmp_path: Path) -> None:
    put("d/1.csv", "a,b\n1,x\n")
    put("d/2.csv", "b,a\ny,2\n")
    put("d/3.csv", "a,b\n3,z\n")
    put("d/4.csv", "")
    spec = folder(tmp_path).files()
    assert len(spec.scans) == 2
    assert [row["b"] for row in reading.query(spec)] == ["x", "y", "z"]


def test_many_json_shapes_nest(put: Put, tmp_path: Path) -> None:
    put("d/1.json", json.dumps([{"u": {"n": 1, "tags": ["x"]}, "z": None, "e": []}]))
    put("d/2.json", json.dumps([{"u": {"n": 2.5, "more": {"k": True}}, "z": None}]))
    rows = folder(tmp_path).rows("SELECT u, z, e FROM t ORDER BY u['n']")
    assert rows == [
        {"u": {"n": 1.0, "tags": ["x"], "more": None}, "z": None, "e": []},
        {"u": {"n": 2.5, "tags": None, "more": {"k": True}}, "z": None, "e": None},
    ]


def test_a_json_fraction_after_many_whole_numbers_is_kept(put: Put, tmp_path: Path) -> None:
    records = [{"v": number} for number in range(5000)]
    put("d/1.ndjson", writing.lines([*records, {"v": 0.5}]))
    assert folder(tmp_path).rows("SELECT sum(v) AS s FROM t") == [{"s": 12497500.5}]


def test_one_json_file_that_mixes_numbers_and_text_is_refused(put: Put, tmp_path: Path) -> None:
    put("d/1.json", '[{"v": 1}, {"v": "x"}]')
    with pytest.raises(DatasetError, match=r"column 'v' of .* holds both"):
        folder(tmp_path).resolve()


def test_json_and_ndjson_side_by_side(put: Put, tmp_path: Path) -> None:
    put("d/1.json", '[{"v": 1}]')
    put("d/2.json", '{"v": 2}\n{"v": 3}\n')
    put("d/3.jsonl", '{"v": 4}\n')
    assert [row["v"] for row in folder(tmp_path).rows()] == [1, 2, 3, 4]


def test_avro_logical_and_nested_types(put: Put, tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "i", "type": "int"},
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "b", "type": "bytes"},
            {"name": "l", "type": {"type": "array", "items": "string"}},
            {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["P", "Q"]}},
            {
                "name": "m",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {
                "name": "s",
                "type": {
                    "type": "record",
                    "name": "s",
                    "fields": [{"name": "x", "type": "double"}],
                },
            },
        ],
    }
    row = {
        "i": 1,
        "d": date(2024, 1, 2),
        "t": datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "b": b"\x00",
        "l": ["x", "y"],
        "e": "Q",
        "m": Decimal("1.25"),
        "s": {"x": 0.5},
    }
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, [row])
    put("d/1.avro", buffer.getvalue())
    assert folder(tmp_path).rows() == [row]
