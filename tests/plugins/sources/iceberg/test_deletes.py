"""Rows that delete files remove."""

import pickle
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyiceberg.types import LongType

from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.iceberg.scanning import IcebergTable
from tests.kit import iceberg_tables as tables
from tests.plugins.sources.iceberg.judged import BY_DAY, MORE, ROWS, assert_as_judged, read_rows


async def test_deleted_positions_are_left_out(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    table.append(MORE)
    paths = [each["data_file"]["file_path"] for each in tables.data_files(tmp_path / "t")]
    counts = {each["data_file"]["file_path"]: each["data_file"]["record_count"]
              for each in tables.data_files(tmp_path / "t")}  # fmt: skip
    tables.delete_positions(tmp_path / "t", {each: [0, counts[each] - 1] for each in paths})
    spec = await assert_as_judged(tmp_path)
    assert isinstance(spec, IcebergTable)
    assert len(spec.splits) == 2
    assert await read_rows(spec, "SELECT count(*) AS n, min(id) AS low FROM t") == [
        {"n": 6, "low": 1}
    ]
    tables.adopted(tmp_path).append(ROWS.slice(0, 1))  # Later files keep these positions.
    await assert_as_judged(tmp_path)


def test_each_file_with_deletes_is_a_part_that_goes_to_other_processes(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    gone = pa.table({"id": pa.array([1, 8], pa.int32())})
    tables.delete_values(tmp_path / "t", gone, {"id": 1})
    spec = pickle.loads(pickle.dumps(tables.resolved(tmp_path)))
    assert spec == tables.resolved(tmp_path)
    assert spec.is_divisible
    found = {
        frozenset(
            row["id"]
            for batch in scanners.of(spec).scan(spec, RowRequest(("id",), (part,)))
            for row in batch.to_pylist()
        )
        for part in spec.splits
    }
    assert found == {frozenset({0, 2, 3, 4, 5, 6, 7}), frozenset({9})}


async def test_deleted_values_are_left_out(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    gone = pa.table({"id": pa.array([1, 2, 5], pa.int32()), "name": ["b", None, "other"]})
    tables.delete_values(tmp_path / "t", gone, {"id": 1, "name": 2})
    ids = [{"id": each} for each in (0, 3, 4, 5, 6, 7)]
    spec = tables.resolved(tmp_path)
    assert await read_rows(spec, "SELECT id FROM t ORDER BY id") == ids
    assert await read_rows(spec, "SELECT count(*) AS n FROM t WHERE ratio < 1") == [{"n": 2}]
    # Values are deleted from earlier files alone.
    tables.adopted(tmp_path).append(ROWS.slice(1, 1))
    sql = "SELECT id FROM t WHERE name = 'b'"
    assert await read_rows(tables.resolved(tmp_path), sql) == [{"id": 1}]


async def test_files_of_the_same_commit_keep_deleted_values_but_no_positions(
    tmp_path: Path,
) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    gone = pa.table({"id": pa.array([1, 8], pa.int32())})
    tables.delete_values(tmp_path / "t", gone, {"id": 1}, as_of=2)
    (path,) = (
        each["data_file"]["file_path"]
        for each in tables.data_files(tmp_path / "t")
        if each["data_file"]["record_count"] == 2
    )
    tables.delete_positions(tmp_path / "t", {path: [1]}, as_of=2)
    ids = [each["id"] for each in await read_rows(tables.resolved(tmp_path))]
    assert sorted(ids) == [0, 2, 3, 4, 5, 6, 7, 8]


async def test_deletes_compare_columns_that_were_dropped_and_widened(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    gone = pa.table({"id": pa.array([3], pa.int32()), "name": ["d"]})
    tables.delete_values(tmp_path / "t", gone, {"id": 1, "name": 2})
    table = tables.adopted(tmp_path)
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("name")
        change.update_column("id", LongType())
    spec = tables.resolved(tmp_path)
    assert spec.schema.names == ["id", "ratio", "day"]
    assert await read_rows(spec, "SELECT sum(id) AS n FROM t") == [{"n": sum(range(8)) - 3}]


async def test_deletes_of_a_partition_stay_in_it(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY)
    field = pa.field("name", pa.string(), metadata={b"PARQUET:field_id": b"2"})
    gone = pa.table([["a", "b"]], schema=pa.schema([field]))
    tables.commit_deletes(
        tmp_path / "t", gone, 2, [2], {"day": (date(2020, 1, 1) - date(1970, 1, 1)).days}
    )
    names = {each["name"] for each in await read_rows(tables.resolved(tmp_path))}
    assert "a" not in names  # of that day
    assert "b" in names


async def test_files_are_skipped_by_their_bounds(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    gone = pa.table({"id": pa.array([99], pa.int32())})
    tables.delete_values(tmp_path / "t", gone, {"id": 1})
    spec = tables.resolved(tmp_path)
    assert isinstance(spec, IcebergTable)
    (other,) = (each.path for each in spec.files if each.row_count == 8)
    Path(other).unlink()
    for condition in (
        "id = 9", "id > 8", "name >= 'i' AND id <> 8", "day = DATE '2020-01-09' AND id = 9",
    ):  # fmt: skip
        assert await read_rows(spec, f"SELECT id FROM t WHERE {condition}") == [{"id": 9}], (
            condition
        )
