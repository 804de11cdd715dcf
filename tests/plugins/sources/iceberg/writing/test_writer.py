"""Each statement adds one snapshot to a table of Iceberg, or none; PyIceberg judges."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import LongType, NestedField, StringType, StructType, UUIDType

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import FilesTable
from caraway_plugins.sources.iceberg.scanning import WrittenIcebergTable
from caraway_plugins.sources.iceberg.writing import commits, row_files
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import (
    ROWS,
    Partition,
    Written,
    create,
    in_order,
)

EXPECTED = in_order(ROWS)
SMALL = pa.schema({"id": pa.int64(), "v": pa.string()})


def small(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": [f"v{each}" for each in ids]}, schema=SMALL)


def files(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if each.is_file()}


def refused(written: Written, given: pa.Table, folder: Path) -> QueryError:
    """Return the error of an INSERT that leaves the table, and no file."""
    before, there = written.read(), files(folder)
    with pytest.raises(QueryError) as caught:
        written.insert(given)
    assert written.read() == before
    assert files(folder) == there
    assert str(folder) not in caught.value.message
    return caught.value


@pytest.fixture(params=["sqlite", "rest"])
def small_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    written = create(tmp_path, SMALL)
    if request.param == "sqlite":
        yield written
        return
    with written_tables.over_rest(written) as served:
        yield served


PARTITIONS: list[list[Partition]] = [
    [],
    [("id", BucketTransform(3))],
    [("v", IdentityTransform())],
    [("v", TruncateTransform(2)), ("m", IdentityTransform())],
    [("m", TruncateTransform(50)), ("i", TruncateTransform(10))],
    [("d", MonthTransform()), ("at", HourTransform())],
    [("z", YearTransform()), ("d", IdentityTransform())],
    [("at", DayTransform()), ("b", IdentityTransform()), ("z", IdentityTransform())],
    [("t", IdentityTransform()), ("x", IdentityTransform()), ("v", BucketTransform(7))],
    [("f", IdentityTransform()), ("i", VoidTransform())],
]


@pytest.mark.parametrize("partitions", PARTITIONS, ids=str)
def test_values_of_all_types_arrive_in_one_snapshot(
    tmp_path: Path, partitions: list[Partition]
) -> None:
    written = create(tmp_path, partitions=partitions)
    given = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1)])
    assert written.insert(given) == 4
    assert len(written.snapshots()) == 1
    assert repr(written.read()) == repr(EXPECTED)
    # Files are skipped by their partitions and bounds, of PyIceberg and of the source.
    for each in EXPECTED:
        assert [row["id"] for row in written.read(row_filter=f"id = {each['id']}")] == [each["id"]]
    assert [row["id"] for row in written.read(row_filter="i < 0 or v = 'a b'")] == [0, 1]
    assert [row["id"] for row in written.read(row_filter="d is null")] == [2]
    assert written.insert(ROWS) == 4
    assert repr(written.own_rows()) == repr([each for each in EXPECTED for _ in range(2)])


@pytest.mark.parametrize("partitions", PARTITIONS, ids=str)
def test_rows_are_replaced_by_their_places(tmp_path: Path, partitions: list[Partition]) -> None:
    written = create(tmp_path, partitions=partitions)
    written.insert(ROWS)
    written.insert(ROWS.slice(2))
    placed, rows = written.placed()
    gone = rows.filter(pc.is_in(rows.column("id"), pa.array([1, 2])))
    texts = pa.array([f"new {number}" for number in range(len(gone))])
    added = gone.set_column(gone.column_names.index("v"), "v", texts)
    assert written.replace(placed, gone, added) == 3
    expected = [EXPECTED[0], EXPECTED[1], EXPECTED[2], EXPECTED[2], EXPECTED[3], EXPECTED[3]]
    found = written.read()
    assert sorted(each["v"] for each in found[1:4]) == ["new 0", "new 1", "new 2"]
    assert repr([{**each, "v": 0} for each in found]) == repr([{**e, "v": 0} for e in expected])
    assert repr(written.own_rows()) == repr(found)
    # Places of rows count on where rows are deleted already.
    placed, rows = written.placed()
    assert written.replace(placed, rows.filter(pc.equal(rows.column("id"), 3))) == 2
    assert [each["id"] for each in written.read()] == [0, 1, 2, 2]
    assert len(written.snapshots()) == 4
    placed, rows = written.placed()
    assert written.replace(placed, rows) == 4
    assert written.read() == written.own_rows() == []


def test_columns_with_nan_have_no_bounds(tmp_path: Path) -> None:
    inner = pa.struct({"y": pa.float64()})
    schema = pa.schema({"id": pa.int64(), "f": pa.float64(), "g": pa.float64(), "s": inner})
    written = create(tmp_path, schema)
    values = {"f": [1.0, float("nan")], "g": [1.0, None], "s": [{"y": 1.0}, {"y": float("nan")}]}
    written.insert(pa.table({"id": [1, 2], **values}, schema=schema))
    (file,) = written.catalog.load_table("n.t").inspect.files().to_pylist()
    assert [key for key, _ in file["lower_bounds"]] == [1, 3]
    assert [key for key, _ in file["upper_bounds"]] == [1, 3]


def test_only_tables_of_catalogs_that_are_written_have_a_writer(tmp_path: Path) -> None:
    written = create(tmp_path)
    for other in (
        replace(written.request, access="read"),
        replace(written.request, path=str(tmp_path / "n" / "t")),
    ):
        spec = type(written)(other, written.catalog, "t").spec
        assert (spec.written, bool(spec.why_no_insert)) == (None, True)
        assert spec.why_unchangeable
    written.insert(ROWS)
    past = {**written.request.params, "iceberg_snapshot": str(written.snapshots()[0].snapshot_id)}
    spec = type(written)(replace(written.request, params=past), written.catalog, "t").spec
    assert spec.written is None
    spec = written.spec
    assert isinstance(spec, FilesTable)
    assert (spec.why_no_insert, spec.why_unchangeable) == ("", "")
    placed, rows = written.placed()
    written.replace(placed, rows.slice(0, 1))
    spec = written.spec
    assert isinstance(spec, WrittenIcebergTable)
    assert (spec.why_no_insert, spec.why_unchangeable) == ("", "")


def test_columns_that_are_not_named_are_null(small_table: Written) -> None:
    assert small_table.insert(pa.table({"id": [9]})) == 1
    assert small_table.read() == [{"id": 9, "v": None}]


def test_no_rows_make_no_snapshot(small_table: Written, tmp_path: Path) -> None:
    there = files(tmp_path)
    assert small_table.insert(small()) == 0
    placed, rows = small_table.placed()
    assert small_table.replace(placed, rows) == 0
    assert (len(small_table.snapshots()), files(tmp_path)) == (0, there)


def test_many_rows_are_divided_into_files(
    small_table: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "_BUFFERED_BYTES", 4_000)
    given = pa.concat_tables(small(*range(start, start + 100)) for start in range(0, 1000, 100))
    assert small_table.insert(given) == 1000
    (snapshot,) = small_table.snapshots()
    assert int(snapshot.summary["added-data-files"]) > 3
    assert [each["id"] for each in small_table.read()] == list(range(1000))


def test_null_is_refused_where_a_value_is_required(tmp_path: Path) -> None:
    inner = StructType(NestedField(4, "y", LongType(), required=True))
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "v", StringType()),
        NestedField(3, "s", inner),
    )
    written = create(tmp_path, schema)
    given = pa.struct({"y": pa.int64()})
    for values, path in (
        ({"v": ["x"]}, "id"),
        ({"id": [1, None]}, "id"),
        ({"id": [1], "s": pa.array([{"y": None}], given)}, "s.y"),
    ):
        error = refused(written, pa.table(values), tmp_path)
        assert isinstance(error, InvalidQueryError)
        assert f"column '{path}' takes no NULL; no row was inserted" in error.message
    assert written.insert(pa.table({"id": [1, 2], "s": pa.array([None, {"y": 1}], given)})) == 2


def test_unique_ids_are_written(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType()))
    written = create(tmp_path, schema)
    given = pa.table({"id": [1, 2], "u": pa.array([b"0" * 16, None], pa.binary(16))})
    assert written.insert(given) == 2
    assert [each["id"] for each in written.read()] == [1, 2]
    assert written.own_rows()[0]["u"] == b"0" * 16


@pytest.mark.parametrize("version", [1, 3])
def test_other_versions_of_the_format_are_refused(tmp_path: Path, version: int) -> None:
    written = create(tmp_path, SMALL, properties={"format-version": "1"})
    (metadata,) = (tmp_path / "n" / "t" / "metadata").iterdir()
    document = json.loads(metadata.read_text())
    added = {"format-version": version, "last-sequence-number": 0, "next-row-id": 0}
    metadata.write_text(json.dumps({**document, **added}))
    error = refused(written, small(1), tmp_path)
    assert f"the table has version {version}, and version 2 is written" in error.message


def test_places_of_files_are_those_of_the_table(tmp_path: Path) -> None:
    named = {
        f"write.{kind}.path": (tmp_path / "own" / kind).as_uri() for kind in ("data", "metadata")
    }
    written = create(tmp_path, SMALL, properties=named)
    assert written.insert(small(1)) == 1
    assert [each.suffix for each in files(tmp_path / "own" / "data")] == [".parquet"]
    assert len(files(tmp_path / "own" / "metadata")) >= 3
    assert written.read() == small(1).to_pylist()


def test_rows_of_others_are_kept(small_table: Written) -> None:
    small_table.insert(small(1))
    table = small_table.catalog.load_table("n.t")
    table.append(small(2))
    table.update_schema().rename_column("v", "w").commit()
    renamed = small(3).rename_columns(["id", "w"])
    assert small_table.insert(renamed) == 1
    assert [each["id"] for each in small_table.read()] == [1, 2, 3]
    placed, rows = small_table.placed()
    assert small_table.replace(placed, rows.slice(0, 1)) == 1
    assert len(small_table.read()) == 2
    table = small_table.catalog.load_table("n.t")
    table.append(small(4).rename_columns(["id", "w"]))
    assert len(small_table.read()) == 3


def meanwhile(written: Written, monkeypatch: pytest.MonkeyPatch, *acts: Any) -> None:
    """Have acts of another writer come just before the next tries to commit."""
    left = iter(acts)
    real = commits.SnapshotWrite._is_committed

    def raced(self: Any, *args: Any) -> bool:
        if (act := next(left, None)) is not None:
            act(written.catalog.load_table("n.t"))
        return real(self, *args)

    monkeypatch.setattr(commits.SnapshotWrite, "_is_committed", raced)
    monkeypatch.setattr(commits, "_DELAYS", Delays(0.0, 0.0))


def test_an_append_of_another_writer_is_no_conflict(
    small_table: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table.insert(small(1))
    meanwhile(small_table, monkeypatch, *[lambda table: table.append(small(7))] * 2)
    assert small_table.insert(small(2)) == 1
    assert [each["id"] for each in small_table.read()] == [1, 2, 7, 7]
    meanwhile(small_table, monkeypatch, lambda table: table.append(small(8)))
    placed, rows = small_table.placed()
    assert small_table.replace(placed, rows.slice(0, 4)) == 4
    assert [each["id"] for each in small_table.read()] == [8]
    numbers = [each.sequence_number for each in small_table.snapshots()]
    assert numbers == sorted(set(numbers))


def test_changes_of_another_writer_are_a_conflict(
    small_table: Written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_table.insert(small(1))
    small_table.insert(small(2))
    placed, rows = small_table.placed()
    meanwhile(small_table, monkeypatch, lambda table: table.delete("id = 2"))
    before = files(tmp_path / "n" / "t" / "data")
    with pytest.raises(
        ExecutionError,
        match="another writer changed its rows meanwhile; no row was changed; run",
    ):
        small_table.replace(placed, rows)
    assert [each["id"] for each in small_table.read()] == [1]
    made = files(tmp_path / "n" / "t" / "data") - before
    assert not any("deletes" in each.name for each in made)
    # An INSERT has nothing to do with them.
    meanwhile(small_table, monkeypatch, lambda table: table.delete("id = 1"))
    assert small_table.insert(small(5)) == 1
    assert [each["id"] for each in small_table.read()] == [5]


def test_columns_that_change_meanwhile_are_a_conflict(
    small_table: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def widen(table: Any) -> None:
        table.update_schema().add_column("w", StringType()).commit()

    meanwhile(small_table, monkeypatch, widen)
    with pytest.raises(
        ExecutionError, match="another writer changed its columns meanwhile; no row was ins"
    ):
        small_table.insert(small(1))
    assert small_table.read() == []
    assert small_table.insert(small(1)) == 1


def test_a_table_that_others_write_all_the_time_is_given_up(
    small_table: Written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meanwhile(small_table, monkeypatch, *[lambda table: table.append(small(7))] * 20)
    with pytest.raises(
        ExecutionError, match="another writer changed it 10 times meanwhile; no row was ins"
    ):
        small_table.insert(small(1))
    assert {each["id"] for each in small_table.read()} == {7}


def test_columns_that_changed_since_the_dataset_was_loaded(small_table: Written) -> None:
    table = small_table.table
    small_table.catalog.load_table("n.t").update_schema().add_column("w", StringType()).commit()
    with pytest.raises(ExecutionError, match="the columns of the table have changed"):
        IcebergWriter().insert(table, SMALL).insert_rows(iter(small(1).to_batches()))


def test_a_row_is_not_replaced_twice(small_table: Written, tmp_path: Path) -> None:
    small_table.insert(small(1, 2))
    placed, rows = small_table.placed()
    there = files(tmp_path)
    with pytest.raises(InvalidQueryError, match="by more than one row of the source; no row was"):
        small_table.replace(placed, pa.concat_tables([rows, rows.slice(1)]))
    assert (len(small_table.read()), files(tmp_path)) == (2, there)


def test_a_commit_whose_answer_is_lost_is_looked_up(tmp_path: Path) -> None:
    with written_tables.over_rest(create(tmp_path, SMALL)) as written:
        server = written.server
        assert server is not None
        server.after = lambda _table: 502
        assert written.insert(small(1)) == 1
        server.before = lambda _table: 503
        there = files(tmp_path)
        with pytest.raises(ExecutionError) as caught:
            written.insert(small(2))
        assert "while the rows were committed; look whether they are there" in caught.value.message
        # It may be committed yet, so its files stay.
        assert len(files(tmp_path)) > len(there)
        assert written.read() == small(1).to_pylist()


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_commit_that_is_refused_leaves_nothing(tmp_path: Path, status: int) -> None:
    with written_tables.over_rest(create(tmp_path, SMALL)) as written:
        assert written.server is not None
        written.server.before = lambda _table: status
        error = refused(written, small(1), tmp_path)
        assert error.message.endswith("no row was inserted")


def test_a_commit_requires_what_it_saw(tmp_path: Path) -> None:
    with written_tables.over_rest(create(tmp_path, SMALL)) as written:
        assert written.server is not None
        written.insert(small(1))
        written.insert(small(2))
        first, second = (each["requirements"][1] for each in written.server.commits)
        assert first == {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
        assert second["snapshot-id"] == written.snapshots()[0].snapshot_id


class BrokenError(Exception):
    pass


def failing(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()
    raise BrokenError


def test_rows_that_fail_leave_nothing(
    small_table: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "_BUFFERED_BYTES", 10)
    there = files(tmp_path)
    with pytest.raises(BrokenError):
        IcebergWriter().insert(small_table.table, SMALL).insert_rows(failing(small(1, 2)))
    assert (files(tmp_path), small_table.read()) == (there, [])


def test_a_statement_that_is_stopped_leaves_nothing(small_table: Written, tmp_path: Path) -> None:
    there = files(tmp_path)
    statement = IcebergWriter().insert(small_table.table, SMALL)

    def rows() -> Iterator[pa.RecordBatch]:
        for number in itertools.count():
            if number == 3:
                statement.close()
            yield from small(number).to_batches()

    with pytest.raises(ExecutionError, match="was stopped; no row was inserted"):
        statement.insert_rows(rows())
    assert (files(tmp_path), small_table.read()) == (there, [])


def test_a_table_that_is_gone_is_an_error(small_table: Written, tmp_path: Path) -> None:
    table = small_table.table
    small_table.catalog.drop_table("n.t")
    with pytest.raises(ExecutionError, match="no row was inserted") as caught:
        IcebergWriter().insert(table, SMALL).insert_rows(iter(small(1).to_batches()))
    assert str(tmp_path) not in caught.value.message
