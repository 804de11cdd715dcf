"""Rows are written into files of their partition, with bounds that readers can rely on."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, UUIDType

from caraway_plugins.sources.iceberg.writing import row_files
from tests.plugins.sources.iceberg.writing.written_tables import (
    Written,
    create,
    small,
)


def test_columns_with_nan_have_no_bounds(tmp_path: Path) -> None:
    inner = pa.struct({"y": pa.float64()})
    schema = pa.schema({"id": pa.int64(), "f": pa.float64(), "g": pa.float64(), "s": inner})
    written = create(tmp_path, schema)
    values = {"f": [1.0, float("nan")], "g": [1.0, None], "s": [{"y": 1.0}, {"y": float("nan")}]}
    written.insert(pa.table({"id": [1, 2], **values}, schema=schema))
    (file,) = written.catalog.load_table("n.t").inspect.files().to_pylist()
    assert [key for key, _ in file["lower_bounds"]] == [1, 3]
    assert [key for key, _ in file["upper_bounds"]] == [1, 3]


def test_many_rows_are_divided_into_files(
    small_table: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "_BUFFERED_BYTES", 4_000)
    given = pa.concat_tables(small(*range(start, start + 100)) for start in range(0, 1000, 100))
    assert small_table.insert(given) == 1000
    (snapshot,) = small_table.snapshots()
    assert int(snapshot.summary["added-data-files"]) > 3
    assert [each["id"] for each in small_table.read()] == list(range(1000))


def test_unique_ids_are_written(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType()))
    written = create(tmp_path, schema)
    given = pa.table({"id": [1, 2], "u": pa.array([b"0" * 16, None], pa.binary(16))})
    assert written.insert(given) == 2
    assert [each["id"] for each in written.read()] == [1, 2]
    assert written.own_rows()[0]["u"] == b"0" * 16
