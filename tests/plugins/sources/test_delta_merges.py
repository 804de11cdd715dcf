"""MERGE into Delta tables is one commit, or changes nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.table import TableMerger

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.protocols.remote import ADDED, TAKEN, MergeKey, MergeStep, TableMerge
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import delta_commits
from caraway_plugins.sources.delta_writer import DeltaWriter
from tests.kit.delta_tables import refused, written

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})
KEY = (MergeKey("id", "k"),)
OWN = {"k": "id", "w": "v"}
DELETE = MergeStep(1)
UPDATE = MergeStep(2, (("v", "w"),))
INSERT = MergeStep(1, (("id", "k"), ("v", "w")))
UPSERT = TableMerge(KEY, OWN, (DELETE, UPDATE), (INSERT,))
Given = tuple[int | None, str | None, int | None, int | None]
GIVEN: Sequence[Given] = [(1, "x", 1, 1), (2, "y", 2, 1), (9, "z", 2, 1), (None, "n", 1, 1)]
"""The key, the value, and the clauses of a row that is there and of one that is not."""


def rows(given: Sequence[Given] = GIVEN) -> pa.Table:
    types = {"k": pa.int64(), "w": pa.string(), TAKEN: pa.int64(), ADDED: pa.int64()}
    named = [dict(zip(types, each, strict=True)) for each in given]
    return pa.Table.from_pylist(named, schema=pa.schema(types))


def run(table: RemoteTable, merge: TableMerge = UPSERT, given: Sequence[Given] = GIVEN) -> int:
    made = rows(given)
    return DeltaWriter().merge(table, made.schema, merge).insert_rows(iter(made.to_batches()))


def found(folder: Path) -> list[tuple[Any, ...]]:
    listed = DeltaTable(folder / "t").to_pyarrow_table().to_pylist()
    return sorted((tuple(each.values()) for each in listed), key=repr)


@pytest.fixture(params=[None, ["v"], ["id"]], ids=["whole", "by v", "by id"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> RemoteTable:
    for part in (ROWS.slice(0, 2), ROWS.slice(2)):
        deltalake.write_deltalake(tmp_path / "t", part, mode="append", partition_by=request.param)
    return written(tmp_path)


def test_rows_are_merged_by_one_commit(tmp_path: Path, table: RemoteTable) -> None:
    assert run(table) == 4
    assert found(tmp_path) == [(2, "y"), (3, "c"), (9, "z"), (None, "n")]
    assert DeltaTable(tmp_path / "t").version() == 2
    assert run(table, given=[]) == 0
    assert run(table, given=[(2, "q", None, 1)]) == 0
    assert DeltaTable(tmp_path / "t").version() == 2


@pytest.mark.parametrize("taken", [(), (DELETE, UPDATE)])
def test_a_row_that_several_rows_are_the_same_as_is_kept_once(
    tmp_path: Path, table: RemoteTable, taken: tuple[MergeStep, ...]
) -> None:
    left = (MergeStep(1, computed=(("id", "t.id + 10"),)),)
    merge = TableMerge(KEY, OWN, taken, (INSERT,), left=left)
    given: Sequence[Given] = [(1, "x", None, 1), (1, "y", None, 1), (9, "p", None, 1)] * 2
    assert run(table, merge, given) == 4
    assert found(tmp_path) == [(1, "a"), (12, "b"), (13, "c"), (9, "p"), (9, "p")]


@pytest.mark.parametrize("step", [MergeStep(1), MergeStep(1, (("v", "w"),))])
@pytest.mark.parametrize("is_paired", [True, False])
def test_a_row_is_not_changed_twice(
    tmp_path: Path, table: RemoteTable, step: MergeStep, is_paired: bool
) -> None:
    taken = None if is_paired else 1
    merge = TableMerge(KEY, OWN, (step,), (INSERT,), is_paired=is_paired)
    given: Sequence[Given] = [(2, "x", taken, 1), (2, "y", taken, 1)]
    error = refused(
        tmp_path, lambda: run(table, merge, given), "by more than one row of the source"
    )
    assert isinstance(error, InvalidQueryError)
    assert run(table, merge, given[:1]) == 1


def test_an_error_of_the_rows_ends_the_merge(tmp_path: Path, table: RemoteTable) -> None:
    made = rows()

    def failing() -> Iterator[pa.RecordBatch]:
        yield from made.to_batches()
        raise InvalidQueryError("no such row; no row was changed")

    merge = DeltaWriter().merge(table, made.schema, UPSERT)
    error = refused(tmp_path, lambda: merge.insert_rows(failing()), "no such row")
    assert isinstance(error, InvalidQueryError)


def test_a_stopped_merge_ends_with_the_next_rows(tmp_path: Path, table: RemoteTable) -> None:
    made = rows()
    merge = DeltaWriter().merge(table, made.schema, UPSERT)

    def given() -> Iterator[pa.RecordBatch]:
        yield from made.to_batches()
        merge.close()
        yield from made.to_batches()

    error = refused(tmp_path, lambda: merge.insert_rows(given()), "stopped")
    assert isinstance(error, ExecutionError)


def test_others_that_commit_at_the_same_time_are_said(
    tmp_path: Path, table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = delta_commits.opened
    stale = [opened(table.login)]
    other = pa.table({"id": [50], "v": ["o"]})
    deltalake.write_deltalake(tmp_path / "t", other, mode="append")
    monkeypatch.setattr(
        delta_commits, "opened", lambda login: stale.pop() if stale else opened(login)
    )
    refused(tmp_path, lambda: run(table), "others wrote", "run it again")


def test_a_commit_whose_answer_is_lost_counts(
    tmp_path: Path, table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = TableMerger.execute

    def lost(merger: TableMerger) -> None:
        execute(merger)
        raise OSError("connection reset")

    monkeypatch.setattr(TableMerger, "execute", lost)
    assert run(table) == 4
    assert len(found(tmp_path)) == 4


def test_tables_that_only_grow_take_rows(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, configuration={"delta.appendOnly": "true"})
    table = written(tmp_path)
    refused(tmp_path, lambda: run(table), "'delta.appendOnly'")
    assert run(table, TableMerge(KEY, OWN, (), (INSERT,))) == 2


def test_constraints_hold(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    DeltaTable(tmp_path / "t").alter.add_constraint({"short": "v < 'y'"})
    table = written(tmp_path)
    error = refused(tmp_path, lambda: run(table), "break a constraint of the table (v < 'y')")
    assert isinstance(error, InvalidQueryError)


def test_texts_that_divide_a_table_are_not_empty(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, partition_by=["v"])
    table = written(tmp_path)
    refused(tmp_path, lambda: run(table, given=[(9, "", 1, 1)]), "would be NULL")
    computed = MergeStep(1, computed=(("v", "t.v || 'x'"),))
    merge = TableMerge(KEY, OWN, (computed,), (), is_paired=True)
    refused(tmp_path, lambda: run(table, merge), "values of the source alone")


def test_the_feed_of_changes_has_them(tmp_path: Path) -> None:
    deltalake.write_deltalake(
        tmp_path / "t", ROWS, configuration={"delta.enableChangeDataFeed": "true"}
    )
    run(written(tmp_path))
    feed = pa.table(DeltaTable(tmp_path / "t").load_cdf(starting_version=1).read_all())
    listed = [(each["_change_type"], each["id"], each["v"]) for each in feed.to_pylist()]
    assert sorted(listed, key=repr) == [
        ("delete", 1, "a"), ("insert", 9, "z"), ("insert", None, "n"),
        ("update_postimage", 2, "y"), ("update_preimage", 2, "b"),
    ]  # fmt: skip
