"""Columns about the file of each row."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources import file_columns
from tests.plugins.sources import reading, writing

AT = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def put(folder: Path, name: str, rows: list[dict[str, object]], day: int = 29) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(writing.FORMATS[path.suffix](rows))
    os.utime(path, (AT.replace(day=day).timestamp(),) * 2)
    return path


def dataset(folder: Path, path: str, *declared: pa.Field, **params: str) -> reading.Dataset:
    return reading.Dataset("file", path, folder, {"metadata_columns": "true", **params}, declared)


@pytest.mark.parametrize(
    "suffix", [".parquet", ".csv", ".json", ".jsonl", ".avro", ".arrow", ".orc"]
)
def test_rows_have_the_columns_of_their_file(suffix: str, tmp_path: Path) -> None:
    first = put(tmp_path, f"d/a{suffix}", [{"id": 1}])
    second = put(tmp_path, f"d/b{suffix}", [{"id": 2}, {"id": 3}], day=1)
    of = dataset(tmp_path, "d/")
    assert of.rows("SELECT * FROM t ORDER BY id") == [
        {"id": 1, "_location": str(first), "_last_modified": AT, "_size": first.stat().st_size},
        *(
            {
                "id": id_,
                "_location": str(second),
                "_last_modified": AT.replace(day=1),
                "_size": second.stat().st_size,
            }
            for id_ in (2, 3)
        ),
    ]
    assert of.resolve().schema.field("_last_modified").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".orc"])
@pytest.mark.parametrize(
    "where",
    [
        "_location LIKE '%a.%'",
        "_last_modified > TIMESTAMPTZ '2024-02-15T00:00:00Z'",
        "_size < 100000 AND _location = '{first}'",
    ],
)
def test_files_that_a_filter_leaves_out_are_not_read(
    suffix: str, where: str, tmp_path: Path
) -> None:
    first = put(tmp_path, f"d/a{suffix}", [{"id": 1}])
    second = put(tmp_path, f"d/b{suffix}", [{"id": 2}], day=1)
    if suffix == ".orc":  # Its scanner takes comparisons only.
        where = where.replace("_location LIKE '%a.%'", "_location = '{first}'")
    spec = dataset(tmp_path, "d/").resolve()
    second.write_bytes(b"\0" * second.stat().st_size)
    sql = f"SELECT id FROM t WHERE {where.format(first=first)}"
    assert reading.query(spec, sql) == [{"id": 1}]


def test_they_go_with_the_columns_of_folders(tmp_path: Path) -> None:
    put(tmp_path, "d/year=2024/a.parquet", [{"id": 1}])
    put(tmp_path, "d/year=2025/a.parquet", [{"id": 2}])
    sql = "SELECT id, year FROM t WHERE year = 2025 AND _size > 0"
    assert dataset(tmp_path, "d/").rows(sql) == [{"id": 2, "year": 2025}]


def test_documents_have_them(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    (row,) = dataset(tmp_path, "a.md").rows("SELECT content, _size FROM t")
    assert row == {"content": "text", "_size": 4}


def test_without_the_param_there_are_none(tmp_path: Path) -> None:
    put(tmp_path, "d/a.parquet", [{"id": 1}])
    of = reading.Dataset("file", "d/", tmp_path, {})
    assert of.rows() == [{"id": 1}]


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_columns, "MOST_FILES", 1)
    put(tmp_path, "d/a.parquet", [{"id": 1}])
    put(tmp_path, "d/b.parquet", [{"id": 2}])
    with pytest.raises(DatasetError, match="1 files at most, and there are 2"):
        dataset(tmp_path, "d/").resolve()
