import gzip
import json
import pickle
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType

from caraway_core.errors import DatasetError
from caraway_core.tables import FilesTable, TableSpec, scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.iceberg.scanning import IcebergTable
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.kit import iceberg_tables as tables
from tests.kit.engine import rows, session
from tests.kit.s3 import KEY, REGION, SECRET, S3Server

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int32()),
        "name": ["a", "b", None, "d", "e", "f", "g", "h"],
        "ratio": pa.array([each / 4 for each in range(8)], pa.float32()),
        "day": pa.array([date(2020, 1, 1 + each % 3) for each in range(8)]),
    }
)
MORE = pa.table(
    {
        "id": pa.array([8, 9], pa.int32()),
        "name": ["i", "j"],
        "ratio": pa.array([8.5, None], pa.float32()),
        "day": [date(2020, 1, 9)] * 2,
    }
)


async def found(table: TableSpec, sql: str = "SELECT * FROM t") -> list[dict[str, Any]]:
    return await rows(session({"t": table}), sql)


async def assert_as_judged(folder: Path) -> TableSpec:
    """Compare all rows with those that PyIceberg reads; return the table."""
    table = tables.resolved(folder)
    expected = tables.judge(folder / "t")
    assert sorted(map(repr, await found(table))) == sorted(map(repr, expected.to_pylist()))
    assert table.schema.names == expected.schema.names
    return table


async def test_appended_files_are_one_table_that_executors_divide(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    table = await assert_as_judged(tmp_path)
    assert isinstance(table, FilesTable)
    assert table.is_divisible
    assert table.row_count == 10
    assert set(table.column_bytes) == set(ROWS.column_names)


async def test_columns_are_found_by_their_ids(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("name", "title")
        change.delete_column("ratio")
        change.update_column("id", LongType())
        change.move_first("day")
    with table.update_schema() as change:
        change.add_column("ratio", StringType())
        change.add_column("name", DoubleType())
    now = table.schema().as_arrow()
    added = [[date(2021, 1, 1)], [1 << 40], ["new"], ["text"], [0.5]]
    table.append(pa.table(added, schema=now))
    await assert_as_judged(tmp_path)
    sql = "SELECT title, ratio, name FROM t WHERE id IN (1, 1099511627776) ORDER BY id"
    assert await found(tables.resolved(tmp_path), sql) == [
        {"title": "b", "ratio": None, "name": None},
        {"title": "new", "ratio": "text", "name": 0.5},
    ]


async def test_wider_and_added_columns_leave_one_scan(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    with table.update_schema() as change:
        change.update_column("id", LongType())
        change.update_column("ratio", DoubleType())
        change.add_column("more", LongType())
    table.append(pa.table([[1 << 40], ["x"], [0.1], [date(2020, 1, 1)], [7]],
                          schema=table.schema().as_arrow()))  # fmt: skip
    spec = await assert_as_judged(tmp_path)
    assert spec.is_divisible
    sql = "SELECT id, more FROM t WHERE id > 6 ORDER BY id"
    assert await found(spec, sql) == [{"id": 7, "more": None}, {"id": 1 << 40, "more": 7}]


async def test_fields_inside_of_others_are_found_by_their_ids(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    columns = pa.schema([
        ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)),
    ])  # fmt: skip
    values = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]
    data = pa.table(
        [values, [values, [], None], [[("k", values[0]), ("n", None)], None, []]], schema=columns
    )
    table = tables.create(tmp_path, data)
    with table.update_schema(allow_incompatible_changes=True) as change:
        for path in ("s", ("l", "element"), ("m", "value")):
            at = (path,) if isinstance(path, str) else path
            change.rename_column((*at, "b"), "c")
            change.update_column((*at, "a"), LongType())
            change.add_column((*at, "d"), StringType())
    assert isinstance(await assert_as_judged(tmp_path), IcebergTable)


BY_DAY = "day", IdentityTransform()


async def test_partitions(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY).append(MORE)
    table = await assert_as_judged(tmp_path)
    sql = "SELECT id FROM t WHERE day = DATE '2020-01-09' ORDER BY id"
    assert await found(table, sql) == [{"id": 8}, {"id": 9}]
    assert table.is_divisible


async def test_partition_columns_that_files_lack_have_their_values(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY)
    for each in tables.data_files(tmp_path / "t"):
        file = tables.local(each["data_file"]["file_path"])
        pq.write_table(pq.read_table(file).drop_columns("day"), file)
        size = file.stat().st_size
        assert size < each["data_file"]["file_size_in_bytes"]
    expected = sorted(map(repr, ROWS.to_pylist()))
    found_ = await found(tables.resolved(tmp_path))
    assert (
        sorted(repr({name: each[name] for name in ROWS.column_names}) for each in found_)
        == expected
    )
    sql = "SELECT count(*) AS n FROM t WHERE day = DATE '2020-01-02'"
    assert await found(tables.resolved(tmp_path), sql) == [{"n": 3}]


async def test_names_stand_for_ids_in_files_without_them(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    pq.write_table(MORE, tmp_path / "old.parquet")
    table.add_files([(tmp_path / "old.parquet").as_uri()])
    with table.update_schema() as change:
        change.rename_column("name", "title")
    await assert_as_judged(tmp_path)


async def test_files_without_ids_and_names_are_refused(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    (entry,) = tables.data_files(tmp_path / "t")
    pq.write_table(ROWS, tables.local(entry["data_file"]["file_path"]))
    assert_refused(tmp_path, "invalid", "columns without field ids")


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
    assert await found(spec, "SELECT count(*) AS n, min(id) AS low FROM t") == [{"n": 6, "low": 1}]
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
    assert await found(spec, "SELECT id FROM t ORDER BY id") == ids
    assert await found(spec, "SELECT count(*) AS n FROM t WHERE ratio < 1") == [{"n": 2}]
    # Values are deleted from earlier files alone.
    tables.adopted(tmp_path).append(ROWS.slice(1, 1))
    sql = "SELECT id FROM t WHERE name = 'b'"
    assert await found(tables.resolved(tmp_path), sql) == [{"id": 1}]


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
    ids = [each["id"] for each in await found(tables.resolved(tmp_path))]
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
    assert await found(spec, "SELECT sum(id) AS n FROM t") == [{"n": sum(range(8)) - 3}]


async def test_deletes_of_a_partition_stay_in_it(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY)
    field = pa.field("name", pa.string(), metadata={b"PARQUET:field_id": b"2"})
    gone = pa.table([["a", "b"]], schema=pa.schema([field]))
    tables.commit_deletes(
        tmp_path / "t", gone, 2, [2], {"day": (date(2020, 1, 1) - date(1970, 1, 1)).days}
    )
    names = {each["name"] for each in await found(tables.resolved(tmp_path))}
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
        assert await found(spec, f"SELECT id FROM t WHERE {condition}") == [{"id": 9}], condition


async def test_snapshots_tags_and_branches(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "start").commit()
    table.manage_snapshots().create_branch(first.snapshot_id, "side").commit()
    with table.update_schema() as change:
        change.rename_column("name", "title")
    table.append(MORE.rename_columns(["id", "title", "ratio", "day"]))
    for name, column in (("start", "name"), (str(first.snapshot_id), "name"), ("side", "title")):
        spec = tables.resolved(tmp_path, iceberg_snapshot=name)
        assert await found(spec, f"SELECT count({column}) AS n FROM t") == [{"n": 7}]
    assert_refused(tmp_path, "not_found", "no tag and no branch 'other'", iceberg_snapshot="other")
    assert_refused(tmp_path, "not_found", "no snapshot 17", iceberg_snapshot="17")


def test_fingerprint_changes_with_each_commit(tmp_path: Path) -> None:
    table = tables.create(tmp_path, ROWS)
    source, request = IcebergSource(), tables.request(tmp_path)
    first = source.fingerprint(request)
    assert source.fingerprint(request) == first
    table.append(MORE)
    assert source.fingerprint(request) != first


async def test_folder_of_hadoop_with_a_hint(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    folder = tmp_path / "t" / "metadata"
    numbered = sorted(folder.glob("*.metadata.json"))
    for number, each in enumerate(numbered, start=1):
        packed = gzip.compress(each.read_bytes())
        each.unlink()
        (folder / f"v{number}.gz.metadata.json").write_bytes(packed)
    (folder / "version-hint.text").write_text("1\n")  # It lags behind.
    assert len(await found(tables.resolved(tmp_path))) == 10
    assert len(await found(tables.resolved(tmp_path, "t/metadata/v2.gz.metadata.json"))) == 8


async def test_table_that_was_moved(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    shutil.move(tmp_path / "t", tmp_path / "moved here")
    assert len(await found(tables.resolved(tmp_path, "moved here"))) == 8


def test_several_newest_files_are_refused(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    newest = tables.newest(tmp_path / "t")
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
    assert_refused(tmp_path, "invalid", "several newest metadata files")


async def test_table_without_snapshot(tmp_path: Path) -> None:
    tables.catalog(tmp_path).create_table("n.t", ROWS.schema, (tmp_path / "t").as_uri())
    assert await found(tables.resolved(tmp_path), "SELECT count(*) AS n FROM t") == [{"n": 0}]


@pytest.mark.parametrize("path", ["none", "empty", "none/metadata/1.metadata.json"])
def test_what_is_no_table_is_not_found(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError) as caught:
        tables.resolved(tmp_path, path)
    assert caught.value.type == "not_found"


@pytest.mark.parametrize("at", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("kind", ["metadata", "list", "manifest", "data"])
def test_files_that_are_cut_are_errors(tmp_path: Path, kind: str, at: float) -> None:
    tables.create(tmp_path, ROWS)
    folder = tmp_path / "t"
    file = {
        "metadata": lambda: tables.newest(folder),
        "list": lambda: tables.manifest_list(folder),
        "manifest": lambda: next(folder.glob("metadata/*-m0.avro")),
        "data": lambda: next(folder.glob("data/**/*.parquet")),
    }[kind]()
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * at)])
    error = assert_refused(tmp_path, "invalid", "cut or damaged|is damaged")
    assert str(tmp_path) not in error.message or kind == "data"
    file.unlink()
    if kind != "metadata":
        with pytest.raises(DatasetError) as caught:
            tables.resolved(tmp_path)
        assert caught.value.type in ("not_found", "unavailable", "invalid")


@pytest.mark.parametrize(
    ("change", "type_", "said"),
    [
        ({"format-version": 9}, "invalid", "cut or damaged"),
        ({"current-schema-id": 7}, "invalid", "cut or damaged"),
        ({"schemas": [{"schema-id": 0, "fields": [
            {"id": 1, "name": "g", "type": "geometry", "required": False}]}],
          "current-schema-id": 0}, "unsupported", "column 'g' is of type geometry"),
        ({"schemas": [{"schema-id": 0, "fields": [
            {"id": 1, "name": "g", "type": "int", "required": False, "initial-default": 3}]}],
          "current-schema-id": 0}, "unsupported", "default value"),
    ],
)  # fmt: skip
def test_metadata_that_is_not_known_is_refused(
    tmp_path: Path, change: dict[str, Any], type_: str, said: str
) -> None:
    tables.create(tmp_path, ROWS)
    document = json.loads(tables.newest(tmp_path / "t").read_text())
    tables.write_metadata(tmp_path / "t", {**document, **change})
    assert_refused(tmp_path, type_, said)


@pytest.mark.parametrize(("format_", "said"), [("PUFFIN", "deletion vectors"), ("ORC", "orc")])
def test_formats_that_are_not_read_are_refused(tmp_path: Path, format_: str, said: str) -> None:
    tables.create(tmp_path, ROWS)
    gone = pa.table({"id": pa.array([99], pa.int32())})
    tables.commit_deletes(tmp_path / "t", gone, 2, [1], file_format=format_)
    assert_refused(tmp_path, "unsupported", said)


async def test_table_in_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("icebergs")
    tables.create(tmp_path, ROWS).append(MORE)
    path = next(each["data_file"]["file_path"] for each in tables.data_files(tmp_path / "t"))
    folder, uri = tmp_path / "t", (tmp_path / "t").as_uri()
    for with_deletes in (False, True):
        if with_deletes:
            tables.delete_positions(folder, {path: [0]})
        for each in folder.rglob("*.*"):
            key = str(each.relative_to(tmp_path))
            s3_server.put("icebergs", f"lake/{key}", each.read_bytes())
        table = tables.resolved(
            tmp_path, "s3://icebergs/lake/t",
            iceberg_s3_endpoint=s3_server.endpoint, iceberg_s3_region=REGION,
            iceberg_s3_access_key_id=KEY, iceberg_s3_secret_access_key=SECRET,
        )  # fmt: skip
        assert len(await found(table)) == (9 if with_deletes else 10), uri
        assert isinstance(table, IcebergTable) == with_deletes
        assert SECRET not in repr(table)


def test_table_in_a_bucket_names_no_files_of_the_disk(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("elsewhere")
    tables.create(tmp_path, ROWS)
    content = tables.newest(tmp_path / "t").read_bytes()
    s3_server.put("elsewhere", "one.metadata.json", content)
    with pytest.raises(DatasetError, match="name files of a disk") as caught:
        tables.resolved(tmp_path, "s3://elsewhere/one.metadata.json", **s3_server.params())
    assert caught.value.type == "invalid"


def assert_refused(folder: Path, type_: str, said: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError, match=said) as caught:
        tables.resolved(folder, **params)
    assert caught.value.type == type_
    return caught.value
