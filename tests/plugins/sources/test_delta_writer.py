"""INSERT adds rows to Delta tables by one commit, or adds none."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaProtocolError

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.process import write_marks
from caraway_core.protocols.remote import Assignment, TableChange
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import delta_commits, delta_writer
from caraway_plugins.sources.delta import DeltaSource
from caraway_plugins.sources.delta_writer import DeltaWriter
from tests.kit.delta_tables import request, written
from tests.kit.s3 import S3Server

ROWS = pa.table(
    {
        "id": pa.array(range(4), pa.int64()),
        "p": ["a b", "x/y", "ü", None],
        "f": pa.array([0.5, float("nan"), float("-inf"), None]),
        "m": pa.array([Decimal(each) / 4 for each in range(4)], pa.decimal128(9, 2)),
        "d": pa.array([date(2020, 1, 1 + each % 2) for each in range(4)]),
        "at": pa.array([datetime(2020, 1, 1, each) for each in range(4)], pa.timestamp("us")),
        "z": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 4, pa.timestamp("us", "UTC")),
        "l": pa.array([[1, None], [], None, [3]], pa.list_(pa.int32())),
        "s": pa.array([{"x": 1}, {"x": None}, None, {"x": 4}], pa.struct({"x": pa.int64()})),
    }
)


def insert(table: RemoteTable, given: pa.Table) -> int:
    return DeltaWriter().insert(table, given.schema).insert_rows(iter(given.to_batches()))


def read(folder: Path) -> list[dict[str, object]]:
    rows: pa.Table = DeltaTable(folder).to_pyarrow_table()
    return list(rows.sort_by([("id", "ascending")]).to_pylist())


def refused(table: RemoteTable, given: pa.Table, folder: Path) -> QueryError:
    """Return the error of an INSERT that leaves the table as it was."""
    before = DeltaTable(folder).version()
    with pytest.raises(QueryError) as caught:
        insert(table, given)
    assert DeltaTable(folder).version() == before
    assert str(folder) not in caught.value.message
    return caught.value


def test_only_datasets_that_are_written_have_a_writer(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    asked = replace(request(tmp_path, "t"), access="read")
    table = DeltaSource().resolve(asked)
    assert (table.written, bool(table.why_no_insert)) == (None, True)
    assert DeltaSource().resolve(request(tmp_path, "t")).why_no_insert == ""


@pytest.mark.parametrize("keys", [None, ["p"], ["d", "p"]])
def test_values_of_all_types_arrive_in_one_commit(tmp_path: Path, keys: list[str] | None) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS.slice(0, 0), partition_by=keys)
    given = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1)])
    assert insert(written(tmp_path), given) == 4
    assert DeltaTable(tmp_path / "t").version() == 1
    assert repr(read(tmp_path / "t")) == repr(ROWS.to_pylist())


def test_columns_that_are_not_named_are_null(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    assert insert(written(tmp_path), pa.table({"m": [Decimal("1.25")], "id": [9]})) == 1
    *_, added = read(tmp_path / "t")
    assert added == dict.fromkeys(ROWS.column_names) | {"id": 9, "m": Decimal("1.25")}


def test_no_rows_make_no_version(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    assert insert(written(tmp_path), ROWS.slice(0, 0)) == 0
    assert DeltaTable(tmp_path / "t").version() == 0


def test_values_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), False), pa.field("m", pa.decimal128(4, 2))])
    deltalake.write_deltalake(tmp_path / "t", schema.empty_table())
    table = written(tmp_path)
    for given, words in (
        ({"id": pa.array([1 << 40])}, "a value for column 'id' is not a int32"),
        ({"id": pa.array([1]), "m": [Decimal("100.00")]}, "a value for column 'm'"),
        ({"m": [Decimal("1.00")]}, "column 'id' takes no NULL"),
        ({"id": pa.array([1, None], pa.int32())}, "column 'id' takes no NULL"),
    ):
        error = refused(table, pa.table(given), tmp_path / "t")
        assert isinstance(error, InvalidQueryError)
        assert words in error.message and error.message.endswith("no row was inserted")


def test_a_constraint_of_the_table_holds(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    DeltaTable(tmp_path / "t").alter.add_constraint({"small": "id < 100"})
    error = refused(written(tmp_path), pa.table({"id": [5, 100]}), tmp_path / "t")
    assert isinstance(error, InvalidQueryError)
    assert "break a constraint of the table (id < 100); no row was inserted" in error.message


def test_an_error_of_the_rows_ends_the_insert(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise InvalidQueryError("no such row")

    with pytest.raises(InvalidQueryError, match=r"^no such row$"):
        DeltaWriter().insert(written(tmp_path), ROWS.schema).insert_rows(failing())
    assert DeltaTable(tmp_path / "t").version() == 0
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


def test_a_closed_insert_ends_with_the_next_rows(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    made = DeltaWriter().insert(written(tmp_path), ROWS.schema)

    def rows() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        made.close()
        yield from ROWS.to_batches()

    with pytest.raises(ExecutionError, match="stopped; no row was inserted"):
        made.insert_rows(rows())
    assert DeltaTable(tmp_path / "t").version() == 0


def test_a_table_that_lost_a_column_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    fewer = ROWS.drop_columns(["m"])
    deltalake.write_deltalake(tmp_path / "t", fewer, mode="overwrite", schema_mode="overwrite")
    assert "no longer has the column 'm'" in refused(table, ROWS, tmp_path / "t").message


def test_a_table_that_is_gone_is_an_error(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    (tmp_path / "t").rename(tmp_path / "moved")
    with pytest.raises(ExecutionError, match="the table is not there; no row was inserted"):
        insert(table, ROWS)


def test_a_commit_whose_answer_is_lost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    write, fails = deltalake.write_deltalake, OSError("connection reset")

    def lose(*given: object, **options: object) -> None:
        write(*given, **options)
        raise fails

    monkeypatch.setattr(delta_writer, "write_deltalake", lose)
    assert insert(table, ROWS) == 4

    def fail(*_given: object, **_options: object) -> None:
        raise fails

    monkeypatch.setattr(delta_writer, "write_deltalake", fail)
    assert "connection reset; no row" in refused(table, ROWS, tmp_path / "t").message
    monkeypatch.setattr(delta_commits, "opened", _FailsFrom(2, delta_commits.opened))
    error = refused(table, ROWS, tmp_path / "t")
    assert "look whether they are inserted" in error.message


def test_a_commit_is_found_by_its_mark(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table, writer = written(tmp_path), DeltaWriter()
    writes: tuple[Callable[[], int], ...] = (
        lambda: insert(table, ROWS.slice(1)),
        writer.change(table, TableChange("id > 1", (Assignment("f", pa.scalar(1.0)),))).write_rows,
        writer.change(table, TableChange("id = 1")).write_rows,
        writer.change(table, TableChange("")).write_rows,
    )
    marks = {write_marks.give(): write() for write in writes}
    assert list(marks.values()) == [3, 4, 2, 5]
    assert {each: writer.find_commit(table, each) for each in marks} == marks
    assert writer.find_commit(table, write_marks.give()) is None
    (tmp_path / "t").rename(tmp_path / "moved")
    with pytest.raises(ExecutionError):
        writer.find_commit(table, next(iter(marks)))


class _FailsFrom:
    def __init__(self, number: int, opened: object) -> None:
        self._left, self._opened = number, opened

    def __call__(self, login: object) -> object:
        self._left -= 1
        if not self._left:
            raise OSError("away")
        return self._opened(login)  # type: ignore[operator]


@pytest.mark.parametrize("failure", [CommitFailedError, DeltaProtocolError])
def test_errors_name_no_places_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)

    def fail(*_given: object, **_options: object) -> None:
        raise failure(f"at {table.login['uri']}: refused\nmore")

    monkeypatch.setattr(delta_writer, "write_deltalake", fail)
    message = refused(table, ROWS, tmp_path / "t").message
    assert "INSERT into delta table 't' failed" in message and "more" not in message


def test_rows_reach_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("written")
    table = DeltaTable.create(
        "s3://written/t",
        deltalake.Schema.from_arrow(ROWS.schema),
        storage_options={
            "aws_endpoint": s3_server.endpoint, "aws_region": s3_server.params()["s3_region"],
            "aws_access_key_id": s3_server.params()["s3_key"],
            "aws_secret_access_key": s3_server.params()["s3_secret"], "allow_http": "true",
        },
    )  # fmt: skip
    assert insert(written(tmp_path, "s3://written/t", **s3_server.params()), ROWS) == 4
    table.update_incremental()
    assert table.version() == 1
