"""Tables of Iceberg as sources read them."""

import gzip
import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import DoubleType, LongType, StringType

from caraway_core.errors import DatasetError
from caraway_core.tables import FilesTable
from caraway_plugins.sources.iceberg.scanning import IcebergTable
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.kit import iceberg_tables as tables
from tests.kit.s3 import KEY, REGION, SECRET, S3Server
from tests.plugins.sources.iceberg.judged import (
    BY_DAY,
    MORE,
    ROWS,
    assert_as_judged,
    assert_refused,
    read_rows,
)


async def test_appended_files_are_one_table_that_executors_divide(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    table = await assert_as_judged(tmp_path)
    assert isinstance(table, FilesTable)
    assert table.is_divisible
    assert table.row_count == 10
    assert set(table.column_bytes) == set(ROWS.column_names)
    assert dict(table.ranges) == {"id": (0.0, 9.0), "day": (18_262.0, 18_270.0)}


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
    assert await read_rows(tables.resolved(tmp_path), sql) == [
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
    assert await read_rows(spec, sql) == [{"id": 7, "more": None}, {"id": 1 << 40, "more": 7}]


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


async def test_partitions(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY).append(MORE)
    table = await assert_as_judged(tmp_path)
    sql = "SELECT id FROM t WHERE day = DATE '2020-01-09' ORDER BY id"
    assert await read_rows(table, sql) == [{"id": 8}, {"id": 9}]
    assert table.is_divisible


async def test_partition_columns_that_files_lack_have_their_values(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY)
    for each in tables.data_files(tmp_path / "t"):
        file = tables.local(each["data_file"]["file_path"])
        pq.write_table(pq.read_table(file).drop_columns("day"), file)
        size = file.stat().st_size
        assert size < each["data_file"]["file_size_in_bytes"]
    read = await read_rows(tables.resolved(tmp_path))
    by_name = [{name: row[name] for name in ROWS.column_names} for row in read]
    assert sorted(map(repr, by_name)) == sorted(map(repr, ROWS.to_pylist()))
    sql = "SELECT count(*) AS n FROM t WHERE day = DATE '2020-01-02'"
    assert await read_rows(tables.resolved(tmp_path), sql) == [{"n": 3}]


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
        assert await read_rows(spec, f"SELECT count({column}) AS n FROM t") == [{"n": 7}]
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
    assert len(await read_rows(tables.resolved(tmp_path))) == 10
    assert len(await read_rows(tables.resolved(tmp_path, "t/metadata/v2.gz.metadata.json"))) == 8


async def test_table_that_was_moved(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    shutil.move(tmp_path / "t", tmp_path / "moved here")
    assert len(await read_rows(tables.resolved(tmp_path, "moved here"))) == 8


def test_several_newest_files_are_refused(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    newest = tables.newest(tmp_path / "t")
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
    assert_refused(tmp_path, "invalid", "several newest metadata files")


async def test_folder_as_the_address_of_a_file(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS)
    moved = (tmp_path / "t").rename(tmp_path / "a b%20c")
    table = tables.resolved(tmp_path, moved.as_uri())
    assert len(await read_rows(table)) == 8


async def test_table_without_snapshot(tmp_path: Path) -> None:
    tables.catalog(tmp_path).create_table("n.t", ROWS.schema, (tmp_path / "t").as_uri())
    assert await read_rows(tables.resolved(tmp_path), "SELECT count(*) AS n FROM t") == [{"n": 0}]


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


@pytest.mark.parametrize("format_", ["PUFFIN", "ORC"])
def test_formats_that_are_not_read_are_refused(tmp_path: Path, format_: str) -> None:
    tables.create(tmp_path, ROWS)
    gone = pa.table({"id": pa.array([99], pa.int32())})
    tables.commit_deletes(tmp_path / "t", gone, 2, [1], file_format=format_)
    assert_refused(tmp_path, "unsupported", f"deletes in {format_.lower()} files")


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
        assert len(await read_rows(table)) == (9 if with_deletes else 10), uri
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


async def test_required_fields_of_null_structs_are_null(tmp_path: Path) -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    table = tables.create(tmp_path, pa.table({"s": pa.array([{"a": 1}, None], required)}))
    with table.update_schema() as change:
        change.make_column_optional(("s", "a"))
    sql = "SELECT s['a'] AS a FROM t ORDER BY 1"
    assert await read_rows(tables.resolved(tmp_path), sql) == [{"a": 1}, {"a": None}]
