"""UPDATE and DELETE of Delta tables are one commit each, or change nothing."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.protocols.remote import Assignment, TableChange
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import delta_commits
from caraway_plugins.sources.delta_writer import DeltaWriter
from tests.kit.delta_tables import refused, written

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", None]})
DELETED = TableChange('"id" > 1')


def updated(column: str, value: Any = None, condition: str = "", sql: str = "") -> TableChange:
    return TableChange(condition, (Assignment(column, value, sql),))


def run(table: RemoteTable, change: TableChange) -> int:
    return DeltaWriter().change(table, change).write_rows()


def found(folder: Path) -> list[dict[str, Any]]:
    rows: pa.Table = DeltaTable(folder / "t").to_pyarrow_table()
    return list(rows.sort_by([("id", "ascending")]).to_pylist())


def test_a_change_is_one_commit_and_counts_its_rows(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    assert run(table, updated("v", pa.scalar("x"), '"v" IS NOT NULL')) == 2
    assert run(table, updated("id", sql='"id" + 1', condition='"id" = 3')) == 1
    assert [tuple(each.values()) for each in found(tmp_path)] == [(1, "x"), (2, "x"), (4, None)]
    assert run(table, DELETED) == 2
    assert run(table, TableChange('"id" = 77')) == 0
    assert DeltaTable(tmp_path / "t").version() == 3
    assert run(table, TableChange("")) == 1
    assert run(table, TableChange("")) == 0
    assert DeltaTable(tmp_path / "t").version() == 4


@pytest.mark.parametrize("keys", [None, ["v"]])
def test_rows_of_files_without_statistics_are_counted(
    tmp_path: Path, keys: list[str] | None
) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, partition_by=keys)
    (log,) = (tmp_path / "t" / "_delta_log").glob("*.json")
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    for each in lines:
        each.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, lines)))
    table = written(tmp_path)
    assert run(table, TableChange("\"v\" = 'a'")) == 1
    assert run(table, TableChange("")) == 2
    assert found(tmp_path) == []


EDGES = [
    ("i", pa.scalar(-(2**63), pa.int64())),
    ("s", pa.scalar(-(2**15), pa.int16())),
    ("f", pa.scalar(5e-324)),
    ("f", pa.scalar(-0.0)),
    ("f", pa.scalar(float("nan"))),
    ("f", pa.scalar(float("-inf"))),
    ("g", pa.scalar(0.1, pa.float32())),
    ("m", pa.scalar(Decimal("-9999999999999999.99"), pa.decimal128(18, 2))),
    ("b", pa.scalar(False)),
    ("d", pa.scalar(date(1, 1, 1))),
    ("d", pa.scalar(date(9999, 12, 31))),
    ("at", pa.scalar(datetime(1, 1, 1, 0, 0, 0, 1), pa.timestamp("us"))),
    ("z", pa.scalar(datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), pa.timestamp("us", "UTC"))),
    ("x", pa.scalar(b"\x00'\xff")),
    *(("t", pa.scalar(each)) for each in ("", "it's", '"', "\\", "\\N", "{}", "%s", "a\nb", "😀")),
]
ALL = pa.table({
    "id": pa.array([1], pa.int64()),
    **{name: pa.nulls(1, value.type) for name, value in EDGES},
    "l": pa.nulls(1, pa.list_(pa.int64())),
})  # fmt: skip


@pytest.mark.parametrize(("name", "value"), EDGES)
def test_constants_are_kept_exactly(tmp_path: Path, name: str, value: pa.Scalar) -> None:
    deltalake.write_deltalake(tmp_path / "t", ALL)
    table = written(tmp_path)
    assert run(table, updated(name, value)) == 1
    (row,) = found(tmp_path)
    assert repr(row[name]) == repr(value.as_py())
    assert run(table, updated(name, pa.scalar(None, value.type))) == 1
    assert found(tmp_path)[0][name] is None


def test_a_list_is_set_to_null_alone(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ALL.set_column(
        ALL.num_columns - 1, ALL.schema.field("l"), pa.array([[1]], pa.list_(pa.int64()))
    ))  # fmt: skip
    table = written(tmp_path)
    type_ = ALL.schema.field("l").type
    refused(tmp_path, lambda: run(table, updated("l", pa.scalar([2], type_))), "to NULL alone")
    assert run(table, updated("l", pa.scalar(None, type_))) == 1
    assert found(tmp_path)[0]["l"] is None


def test_others_that_commit_at_the_same_time_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    opened = delta_commits.opened
    for change in (DELETED, updated("v", pa.scalar("x"), '"id" = 2')):
        stale = [opened(table.login)]
        # Whatever they write: the library would commit over rows that do not meet the condition.
        deltalake.write_deltalake(tmp_path / "t", ROWS.slice(0, 1), mode="append")
        with monkeypatch.context() as patch:
            patch.setattr(
                delta_commits, "opened",
                lambda login, stale=stale: stale.pop() if stale else opened(login),
            )  # fmt: skip
            error = refused(tmp_path, partial(run, table, change), "run it again")
        assert isinstance(error, ExecutionError) and "others wrote" in error.message
    assert run(table, DELETED) == 2


class Losing:
    """A table that commits, and says that it has failed."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._table, name)
        if name not in ("delete", "update"):
            return work

        def lost(*given: Any, **options: Any) -> None:
            work(*given, **options)
            raise OSError("connection reset")

        return lost


def test_a_commit_whose_answer_is_lost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    opened = delta_commits.opened
    monkeypatch.setattr(delta_commits, "opened", lambda login: Losing(opened(login)))
    assert run(table, updated("v", pa.scalar("x"), '"id" = 3')) == 1
    assert run(table, DELETED) == 2
    times = [0]

    def away(login: Any) -> Any:
        times[0] += 1
        if times[0] > 1:
            raise OSError("away")
        return Losing(opened(login))

    monkeypatch.setattr(delta_commits, "opened", away)
    with pytest.raises(ExecutionError, match="look whether they are deleted before you run it"):
        run(table, TableChange(""))


def test_rows_of_tables_that_only_grow_stay(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, configuration={"delta.appendOnly": "true"})
    table = written(tmp_path)
    for change in (DELETED, TableChange(""), updated("v", pa.scalar("x"))):
        error = refused(tmp_path, partial(run, table, change), "'delta.appendOnly'")
        assert isinstance(error, InvalidQueryError)


def test_constraints_hold(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
    deltalake.write_deltalake(tmp_path / "t", ROWS.cast(schema))
    DeltaTable(tmp_path / "t").alter.add_constraint({"small": "id < 100"})
    table = written(tmp_path)
    for change in (updated("id", pa.scalar(100)), updated("id", pa.scalar(None, pa.int64()))):
        error = refused(
            tmp_path,
            partial(run, table, change),
            "id < 100; id IS NOT NULL",
        )
        assert isinstance(error, InvalidQueryError)
    assert run(table, updated("id", pa.scalar(99))) == 3


def test_columns_that_are_generated_keep_their_rule(tmp_path: Path) -> None:
    long = deltalake.schema.PrimitiveType("long")
    made = {"delta.generationExpression": "id + 1"}
    fields = [deltalake.Field("id", long), deltalake.Field("g", long, metadata=made)]
    DeltaTable.create(tmp_path / "t", deltalake.Schema(fields))
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}), mode="append")
    table = written(tmp_path)
    refused(tmp_path, lambda: run(table, updated("id", pa.scalar(7))), "g = id + 1")
    assert run(table, DELETED) == 1
    assert found(tmp_path) == [{"id": 1, "g": 2}]


def test_the_feed_of_changes_has_them(tmp_path: Path) -> None:
    deltalake.write_deltalake(
        tmp_path / "t", ROWS, configuration={"delta.enableChangeDataFeed": "true"}
    )
    table = written(tmp_path)
    run(table, updated("v", pa.scalar("x"), '"id" = 1'))
    run(table, DELETED)
    feed = pa.table(DeltaTable(tmp_path / "t").load_cdf(starting_version=1).read_all())
    listed = [(each["_change_type"], each["id"], each["v"]) for each in feed.to_pylist()]
    assert sorted(listed, key=repr) == [
        ("delete", 2, "b"), ("delete", 3, None), ("update_postimage", 1, "x"),
        ("update_preimage", 1, "a"),
    ]  # fmt: skip


@pytest.mark.parametrize("feature", ["rowTracking", "identityColumns", "icebergCompatV2", "new"])
def test_features_that_the_library_lacks_are_refused(tmp_path: Path, feature: str) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    (log,) = (tmp_path / "t" / "_delta_log").glob("*.json")
    needed = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    kept = [{"protocol": needed} if "protocol" in each else each for each in lines]
    log.write_text("\n".join(map(json.dumps, kept)))
    table = written(tmp_path)
    for change in (DELETED, updated("v", pa.scalar("x"))):
        refused(tmp_path, partial(run, table, change), "features required")


def test_a_table_that_is_not_what_it_was_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    other = ROWS.set_column(0, "id", pa.array(["1", "2", "3"]))
    for rows in (other, ROWS.drop_columns(["v"])):
        deltalake.write_deltalake(tmp_path / "t", rows, mode="overwrite", schema_mode="overwrite")
        refused(tmp_path, lambda: run(table, DELETED), "no longer has the column")
    (tmp_path / "t").rename(tmp_path / "moved")
    with pytest.raises(ExecutionError, match="the table is not there; no row was deleted"):
        run(table, DELETED)


def test_a_type_that_the_dataset_declares_is_not_written(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    table = written(tmp_path)
    columns = tuple(replace(each, type=pa.string()) for each in table.columns)
    change = updated("id", pa.scalar("1"))
    with pytest.raises(InvalidQueryError, match=r"column 'id' is not a string in the table"):
        DeltaWriter().change(replace(table, columns=columns), change)


def test_a_change_that_was_stopped_before_it_begins_does_nothing(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    change = DeltaWriter().change(written(tmp_path), DELETED)
    change.close()
    refused(tmp_path, change.write_rows, "stopped")


def test_texts_that_divide_a_table_are_not_empty(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, partition_by=["v"])
    table = written(tmp_path)
    refused(tmp_path, lambda: run(table, updated("v", pa.scalar(""))), "would be NULL")
    refused(tmp_path, lambda: run(table, updated("v", sql='"v"')), "constants alone")
    empty = pa.table({"id": [4], "v": [""]})
    insert = DeltaWriter().insert(table, empty.schema)
    refused(tmp_path, lambda: insert.insert_rows(iter(empty.to_batches())), "would be NULL")
    assert run(table, updated("v", pa.scalar("a/b"), "\"v\" = 'b'")) == 1
    assert [each["v"] for each in found(tmp_path)] == ["a", "a/b", None]


@pytest.mark.parametrize(
    "value", [pa.scalar(Decimal("1.25"), pa.decimal128(9, 2)), pa.scalar(b"a")]
)
def test_what_is_not_kept_in_names_of_folders_divides_no_table(
    tmp_path: Path, value: pa.Scalar
) -> None:
    rows = pa.table({"id": [1], "k": pa.array([value.as_py()], value.type)})
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["k"])
    table = written(tmp_path)
    insert = DeltaWriter().insert(table, rows.schema)
    for work in (lambda: run(table, TableChange("")), lambda: insert.insert_rows(
        iter(rows.to_batches())
    )):  # fmt: skip
        refused(tmp_path, work, "divided by column 'k'")


def test_columns_are_compared_where_that_is_exact(tmp_path: Path) -> None:
    types = {
        "i": pa.int32(), "m": pa.decimal128(15, 2), "long": pa.decimal128(16, 2), "f": pa.float64(),
        "l": pa.list_(pa.int64()),
    }  # fmt: skip
    deltalake.write_deltalake(tmp_path / "t", pa.schema(types).empty_table())
    table = written(tmp_path)
    assert {each.name for each in table.columns if each.is_comparable} == {"i", "m", "f", "l"}


def test_messages_keep_words_that_are_no_secrets() -> None:
    login = {
        "uri": "s3://b/t",
        "allow_http": "true",
        "aws_region": "here",
        "aws_access_key_id": "K",
    }
    said = delta_commits._reason(OSError("it is true here: s3://b/t refuses K"), login)
    assert said == "it is true here: ... refuses ..."


DIVIDED = [
    "b = b", "b <> b", "(b <> b) = b", "(b = TRUE) = b", "k + 1 > 0", "k > k", "(k > 0) IS NULL",
    "(k > 0) = (k < 3)", "(k = 0) = b", "CASE WHEN k > 0 THEN b ELSE b IS NULL END", "k IN (0, 5)",
    "k IS NULL", "NOT b",
]  # fmt: skip
PARTS = pa.table({
    "k": pa.array([-1, 0, 5, None] * 3, pa.int64()),
    "b": pa.array([True] * 4 + [False] * 4 + [None] * 4),
    "x": pa.array([b"\xff"] * 12),
    "id": pa.array(range(12), pa.int64()),
})  # fmt: skip


@pytest.mark.parametrize("is_nullable", [True, False])
@pytest.mark.parametrize("condition", DIVIDED)
def test_conditions_of_columns_that_divide_a_table(
    tmp_path: Path, condition: str, *, is_nullable: bool
) -> None:
    schema = PARTS.schema.set(3, PARTS.schema.field("id").with_nullable(is_nullable))
    kept = []
    for number, keys in enumerate([None, ["k"], ["b"], ["b", "k"]]):
        folder = tmp_path / str(number)
        deltalake.write_deltalake(folder / "t", PARTS.cast(schema), partition_by=keys)
        count = run(written(folder), TableChange(condition))
        kept.append([each["id"] for each in found(folder)])
        assert len(kept[-1]) == 12 - count
    assert kept == kept[:1] * 4


def test_a_table_of_no_other_plain_columns_is_refused(tmp_path: Path) -> None:
    rows = PARTS.select(["k", "x"]).append_column("id", pa.array([[1]] * 12))
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["k"])
    table = written(tmp_path)
    refused(tmp_path, lambda: run(table, TableChange("k + 1 > 0")), "no column but those")
    assert run(table, TableChange("")) == 12


def test_a_nan_that_is_compared_is_an_error(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "f": [0.5, float("nan")], "b": [True, False]})
    deltalake.write_deltalake(tmp_path / "t", rows)
    table = written(tmp_path)
    fails = "CAST(CASE WHEN isnan(f) THEN 'nan?' END AS BOOLEAN)"
    test = f"(CASE WHEN isnan(f) THEN {fails} ELSE (f > 0.0) END)"
    for change in (TableChange(test), updated("b", sql=test)):
        error = refused(tmp_path, partial(run, table, change), "a condition compares a NaN")
        assert isinstance(error, InvalidQueryError)
