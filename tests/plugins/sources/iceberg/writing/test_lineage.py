"""Rows of the third version of the format keep their ids, and say which snapshot changed them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import BucketTransform

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_plugins.sources.iceberg.writing import commits
from tests.kit import iceberg_tables, iceberg_vectors
from tests.kit.engine import memory, rows, session
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import (
    UPGRADE,
    Partition,
    Written,
    in_order,
    of_version,
    rewrite,
    small,
)

Lineage = dict[int, tuple[int | None, int]]
_ROW_ID, _CHANGED = b"2147483540", b"2147483539"
PARTITIONS: list[list[Partition]] = [[], [("id", BucketTransform(3))]]


def stored(table: pa.Table, field_id: bytes) -> Sequence[int | None]:
    for field in table.schema:
        if (field.metadata or {}).get(b"PARQUET:field_id") == field_id:
            assert field.nullable and field.type == pa.int64()
            found: list[int | None] = table.column(field.name).to_pylist()
            return found
    return [None] * len(table)


def lineage(written: Written) -> Lineage:
    """Return the id and the last change of each row by `id`, as the specification has them."""
    found: Lineage = {}
    for record, (_, entries) in zip(
        written_tables.listed(written), written_tables.manifests(written), strict=True
    ):
        if record["content"]:
            continue
        next_id = record["first_row_id"]
        for entry in entries:
            file = entry["data_file"]
            first = None if record["first_row_id"] is None else file.get("first_row_id")
            if record["first_row_id"] is not None and first is None:
                first, next_id = next_id, next_id + file["record_count"]
            if entry["status"] == 2:
                continue
            number = entry.get("sequence_number")
            if number is None:
                assert entry["status"] == 1
                number = record["sequence_number"]
            table = pq.read_table(iceberg_tables.local(file["file_path"]))
            columns = (
                table.column("id").to_pylist(), stored(table, _ROW_ID), stored(table, _CHANGED)
            )  # fmt: skip
            for place, (id_, own, changed) in enumerate(zip(*columns, strict=True)):
                assert id_ not in found
                inherited = None if first is None else first + place
                row_id = inherited if own is None else own
                found[id_] = (row_id, number if changed is None else changed)
    ids = [id_ for id_, _ in found.values()]
    assert len(set(ids)) == len(ids)
    document: Any = written.catalog.load_table("n.t").metadata
    assert all(each is not None and each < document.next_row_id for each in ids)
    return found


async def run(written: Written, sql: str, **others: Any) -> None:
    tables = {"t": written.spec, **others}
    await rows(session(tables), sql, writable=frozenset({TableName("t")}))


@pytest.mark.parametrize("partitions", PARTITIONS, ids=str)
async def test_rows_keep_their_ids_through_all_statements(
    tmp_path: Path, partitions: list[Partition]
) -> None:
    written = of_version(tmp_path, 3, partitions=partitions)
    written.insert(small(1, 2, 3))
    written.insert(small(4, 5))
    first = lineage(written)
    assert {each for each, _ in first.values()} == {0, 1, 2, 3, 4}
    assert {id_: number for id_, (_, number) in first.items()} == {1: 1, 2: 1, 3: 1, 4: 2, 5: 2}
    await run(written, "UPDATE t SET v = 'new' WHERE id IN (2, 4)")
    second = lineage(written)
    assert second == first | {2: (first[2][0], 3), 4: (first[4][0], 3)}
    # These rows are in files that say their ids now.
    await run(written, "UPDATE t SET v = v || '!' WHERE id IN (3, 4)")
    third = lineage(written)
    assert third == second | {3: (first[3][0], 4), 4: (first[4][0], 4)}
    await run(written, "DELETE FROM t WHERE id = 3")
    fourth = {id_: each for id_, each in third.items() if id_ != 3}
    assert lineage(written) == fourth
    await run(
        written,
        "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND s.k = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'i')",
        s=memory(k=[1, 5, 9]),
    )
    fifth = lineage(written)
    assert fifth.pop(9)[1] == 6
    del fourth[1]
    assert fifth == fourth | {5: (first[5][0], 6)}
    assert written.read() == written.own_rows() == [
        {"id": 2, "v": "new"}, {"id": 4, "v": "new!"}, {"id": 5, "v": "m"}, {"id": 9, "v": "i"},
    ]  # fmt: skip
    assert await rows(session({"t": written.spec}), "SELECT * FROM t ORDER BY id") == written.read()
    await run(written, "DELETE FROM t")
    assert written.read() == written.own_rows() == []
    assert not lineage(written)


async def test_a_change_says_what_it_took_out(tmp_path: Path) -> None:
    written = of_version(tmp_path, 3)
    written.insert(small(1, 2, 3))
    written.insert(small(4))
    await run(written, "UPDATE t SET v = 'new' WHERE id = 2")
    document: Any = written.catalog.load_table("n.t").metadata
    last = document.snapshots[-1]
    assert last.summary.operation.value == "overwrite"
    assert (last.summary["total-records"], last.summary["deleted-records"]) == ("4", "3")
    assert (last.first_row_id, document.next_row_id) == (4, last.first_row_id + last.added_rows)
    kinds = {each["content"] for each in written_tables.listed(written)}
    assert kinds == {0}
    await run(written, "DELETE FROM t WHERE id = 4")
    assert written.snapshots()[-1].summary.operation.value == "delete"


@pytest.mark.parametrize("before", [1, 2])
async def test_rows_of_before_an_upgrade_get_ids_when_they_are_changed(
    tmp_path: Path, before: int
) -> None:
    written = of_version(tmp_path, before)
    written.insert(small(1, 2, 3))
    written.insert(small(4, 5))
    await run(written, "DELETE FROM t WHERE id = 2")
    number = 0 if before == 1 else 3
    rewrite(tmp_path, lambda found: {**found, **UPGRADE, "last-sequence-number": number})
    await run(written, "UPDATE t SET v = 'new' WHERE id = 3")
    found = lineage(written)
    inserted = {1: 0, 3: 0, 4: 0, 5: 0} if before == 1 else {1: 1, 3: 1, 4: 2, 5: 2}
    assert {id_: each for id_, (_, each) in found.items()} == inserted | {3: number + 1}
    # From now on they have ids.
    await run(written, "UPDATE t SET v = 'new' WHERE id = 5")
    assert lineage(written) == found | {5: (found[5][0], number + 2)}
    expected = [(1, "v1"), (3, "new"), (4, "v4"), (5, "new")]
    assert written.read() == written.own_rows() == [{"id": a, "v": b} for a, b in expected]


def meanwhile(written: Written, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Have an act come before the next write tries to commit."""
    left = [act]
    real = commits.SnapshotWrite._is_committed

    def raced(self: Any, *args: Any) -> bool:
        if left:
            left.pop()()
        return real(self, *args)

    monkeypatch.setattr(commits.SnapshotWrite, "_is_committed", raced)
    monkeypatch.setattr(commits, "_DELAYS", Delays(0.0, 0.0))


def test_rows_that_get_ids_meanwhile_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = of_version(tmp_path, 2)
    written.insert(small(1, 2))
    rewrite(tmp_path, lambda found: {**found, **UPGRADE})
    placed, found = written.placed()
    meanwhile(written, monkeypatch, lambda: written.insert(small(3)))
    with pytest.raises(ExecutionError, match="changed the ids of its rows meanwhile; no row was"):
        written.replace(placed, found.slice(0, 1))
    before = lineage(written)
    # Rows that have ids keep them after an append of another writer.
    placed, found = written.placed()
    meanwhile(written, monkeypatch, lambda: written.insert(small(4)))
    one = in_order(found)[0]["id"]
    assert written.replace(placed, found.filter(pc.equal(found.column("id"), one))) == 1
    after = lineage(written)
    del before[one]
    assert {id_: each for id_, each in after.items() if id_ != 4} == before


def test_a_table_that_is_upgraded_meanwhile_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = of_version(tmp_path, 2)
    written.insert(small(1, 2))
    placed, found = written.placed()

    def upgrade() -> None:
        written.catalog.load_table("n.t").append(small(3))
        rewrite(tmp_path, lambda document: {**document, **UPGRADE})

    meanwhile(written, monkeypatch, upgrade)
    with pytest.raises(ExecutionError, match="the version of its format meanwhile; no row was"):
        written.replace(placed, found.slice(0, 1))
    assert written.own_rows() == small(1, 2, 3).to_pylist()


async def test_rows_of_vectors_stay_deleted_through_changes(tmp_path: Path) -> None:
    written = of_version(tmp_path, 3)
    written.insert(small(1, 2, 3))
    written.insert(small(4, 5, 6))
    before = lineage(written)
    entries = [each for _, found in written_tables.manifests(written) for each in found]
    files = [each["data_file"]["file_path"] for each in entries]
    ids = [pq.read_table(iceberg_tables.local(each)).column("id").to_pylist() for each in files]
    gone = {file: [own.index(2 if 2 in own else 5)] for file, own in zip(files, ids, strict=True)}
    iceberg_vectors.delete(tmp_path / "n" / "t", gone)
    written.catalog.drop_table("n.t")
    newest = iceberg_tables.newest(tmp_path / "n" / "t")
    written.catalog.register_table("n.t", newest.as_uri())
    assert written.own_rows() == small(1, 3, 4, 6).to_pylist()
    await run(written, "UPDATE t SET v = 'new' WHERE id IN (2, 3)")
    expected = [(1, "v1"), (3, "new"), (4, "v4"), (6, "v6")]
    assert written.read() == written.own_rows() == [{"id": a, "v": b} for a, b in expected]
    # The file with 5 was not replaced, and its vector counts.
    after = lineage(written)
    del before[2]
    assert after == before | {3: (before[3][0], 4)}
    assert await rows(session({"t": written.spec}), "SELECT id FROM t ORDER BY id") == [
        {"id": each} for each, _ in expected
    ]
    await run(
        written,
        "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'i')",
        s=memory(k=[5, 6]),
    )
    expected = [(1, "v1"), (3, "new"), (4, "v4"), (5, "i")]
    assert written.read() == written.own_rows() == [{"id": a, "v": b} for a, b in expected]
    await run(written, "DELETE FROM t")
    assert written.read() == written.own_rows() == []


def test_a_column_with_the_name_of_ids_is_refused(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "_row_id": pa.string()})
    written = of_version(tmp_path, 3, schema)
    given = pa.table({"id": [1, 2], "_row_id": ["a", "b"]})
    assert written.insert(given) == 2
    placed, found = written.placed()
    with pytest.raises(InvalidQueryError, match="its column '_row_id' has the name of these"):
        written.replace(placed, found.slice(0, 1))
    assert written.read() == written.own_rows() == given.to_pylist()
