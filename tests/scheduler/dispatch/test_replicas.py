"""Datasets with replicas: the next owner of a partition already has it in memory."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.ids import ExecutorId, TableName
from caraway_core.tables import Keys
from caraway_engine.rows.held import Chunk
from caraway_engine.stored import MissingChunks, StoredVersion
from tests.kit.clusters import in_process_cluster
from tests.kit.stored import parted

ROWS = pa.table({"id": range(3000), "g": [n % 7 for n in range(3000)]})
SUM = "SELECT g, sum(id) AS s FROM t GROUP BY g ORDER BY g"
SUMS = [{"g": g, "s": sum(range(g, 3000, 7))} for g in range(7)]
T = TableName("t")
EXECUTORS = tuple(ExecutorId(f"e{number}") for number in range(4))


@pytest.mark.parametrize("lost", ["e1", "e2", "e3"])
@pytest.mark.parametrize("keys", [None, Keys(("id",))])
async def test_after_a_loss_no_chunk_is_read(tmp_path: Path, lost: str, keys: Keys | None) -> None:
    spec = await parted(tmp_path / "chunks", ROWS, "bucket(16, id)", keys=keys)
    spec = replace(spec, replicas=2)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        assert await cluster.dispatch.load(T, spec) == 3000
        for chunk in (tmp_path / "chunks").rglob("*.arrow"):
            chunk.unlink()
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        await cluster.fleet.lose(ExecutorId(lost))
        cluster.membership.lost(ExecutorId(lost), "it is gone")
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        found = await cluster.execute("SELECT g FROM t WHERE id = 1234")
        assert found.to_pylist() == [{"g": 1234 % 7}]


@pytest.mark.parametrize(("replicas", "is_kept"), [(1, False), (2, True)])
async def test_standby_copies_stay_in_memory_unread(
    tmp_path: Path, replicas: int, is_kept: bool
) -> None:
    spec = replace(await parted(tmp_path, ROWS, "bucket(2, id)"), replicas=replicas)
    (batch,) = ROWS.combine_chunks().to_batches()

    class Chunks:
        def held(self, _chunk: object) -> Chunk:
            return Chunk((batch,))

        def count_bytes(self, _table: TableName, _size_bytes: int) -> object:
            return None

    now_s = [0.0]
    version = StoredVersion(T, spec, 1, clock=lambda: now_s[0])
    version.at(()).load(("[0]",), Chunks())
    now_s[0] = 50.0
    assert not isinstance(version.share(("[1]",), Chunks()), MissingChunks)
    now_s[0] = 100.0
    version.let_go()

    class Nothing(Chunks):
        def held(self, _chunk: object) -> None:  # type: ignore[override]
            return None

    assert isinstance(version.share(("[0]",), Nothing()), MissingChunks) is not is_kept
