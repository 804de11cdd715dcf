"""Pieces of tables, and the executors that have them."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import ExecutorId, TableName
from caraway_engine.sharing import dealing
from caraway_engine.stored import StoredVersion
from tests.kit.stored import parted, stored

ROWS = pa.table({"id": range(3000), "g": [n % 7 for n in range(3000)]})
T = TableName("t")
EXECUTORS = tuple(ExecutorId(f"e{number}") for number in range(4))


async def test_each_partition_has_as_many_holders_as_there_are_replicas(tmp_path: Path) -> None:
    spec = await parted(tmp_path, ROWS, "bucket(16, id)")
    once = dealing.holders(spec, EXECUTORS)
    twice = dealing.holders(spec, EXECUTORS, 2)
    assert list(once) == [f"[{bucket}]" for bucket in range(16)]
    assert all(len(set(ids)) == 2 and ids[:1] == once[name] for name, ids in twice.items())
    assert set(Counter(ids[0] for ids in once.values()).values()) == {4}
    assert set(Counter(each for ids in twice.values() for each in ids).values()) <= {7, 8, 9}
    assert all(len(ids) == 1 for ids in dealing.holders(spec, EXECUTORS[:1], 3).values())
    assert set(dealing.holders(spec, ()).values()) == {()}


async def test_holders_are_those_whom_queries_ask(tmp_path: Path) -> None:
    for spec in (await parted(tmp_path, ROWS, "g"), await stored(tmp_path, ROWS, 5, "whole")):
        holders = dealing.holders(spec, EXECUTORS)
        files = StoredVersion(T, spec, 2).pieces()
        for owner, share in zip(
            EXECUTORS, dealing.assign_pieces(spec, files, EXECUTORS), strict=True
        ):
            assert all(holders[piece.name] == (owner,) for piece in share)
        assert len(holders) == len(files)


async def test_datasets_of_one_group_have_their_buckets_in_the_same_places(tmp_path: Path) -> None:
    small = ROWS.slice(0, 20).set_column(0, "id", ROWS["id"].slice(0, 20).cast(pa.int8()))
    many = await parted(tmp_path, ROWS, "bucket(16, g)")
    few = await parted(tmp_path, small, "bucket(16, id)", key="few")
    assert dealing.holders(many, EXECUTORS, 2) == dealing.holders(few, EXECUTORS, 2)
