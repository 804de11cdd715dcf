"""Each statement adds and replaces rows by one snapshot, or by none; PyIceberg judges."""

import itertools
from collections.abc import Iterator
from pathlib import Path

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
from pyiceberg.types import LongType, NestedField, StringType, StructType

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_plugins.sources.iceberg.writing import row_files
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.plugins.sources.iceberg.writing.written_tables import (
    ROWS,
    SMALL,
    Partition,
    Written,
    create,
    files,
    in_order,
    refused,
    small,
)

EXPECTED = in_order(ROWS)


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


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("partitions", PARTITIONS, ids=str)
def test_rows_are_replaced_by_their_places(
    tmp_path: Path, partitions: list[Partition], version: str
) -> None:
    written = create(tmp_path, partitions=partitions, properties={"format-version": version})
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


def test_columns_that_are_not_named_are_null(small_table: Written) -> None:
    assert small_table.insert(pa.table({"id": [9]})) == 1
    assert small_table.read() == [{"id": 9, "v": None}]


def test_no_rows_make_no_snapshot(small_table: Written, tmp_path: Path) -> None:
    there = files(tmp_path)
    assert small_table.insert(small()) == 0
    placed, rows = small_table.placed()
    assert small_table.replace(placed, rows) == 0
    assert (len(small_table.snapshots()), files(tmp_path)) == (0, there)


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


def test_a_row_is_not_replaced_twice(small_table: Written, tmp_path: Path) -> None:
    small_table.insert(small(1, 2))
    placed, rows = small_table.placed()
    there = files(tmp_path)
    with pytest.raises(InvalidQueryError, match="by more than one row of the source; no row was"):
        small_table.replace(placed, pa.concat_tables([rows, rows.slice(1)]))
    assert (len(small_table.read()), files(tmp_path)) == (2, there)


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
