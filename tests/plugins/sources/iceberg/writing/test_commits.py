"""Snapshots are committed after those of other writers, or not at all; PyIceberg judges."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import StringType

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError
from caraway_plugins.sources.iceberg.writing import commits
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import (
    SMALL,
    Written,
    create,
    files,
    refused,
    small,
)


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
    small_table: Written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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
    is_first = small_table.catalog.load_table("n.t").metadata.format_version == 1
    assert numbers == ([0] * len(numbers) if is_first else sorted(set(numbers)))
    # What a try wrote that was too late is gone.
    rewritten = [each for each in files(tmp_path) if each.name.endswith("-r0.avro")]
    assert len(rewritten) == is_first


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
