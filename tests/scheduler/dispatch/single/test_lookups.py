"""Point lookups on a cluster go only to the owner of the bucket."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import ExecutorId, QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_core.tables import Keys, LookupColumns, StoredTable
from caraway_engine.sharing import dealing
from caraway_engine.stages import Policy
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.stored import parted

ROWS = pa.table({"id": range(1000), "v": [n * 2 for n in range(1000)], "g": [7, 8] * 500})
KEYS = Keys(("id",), indexes=(LookupColumns(("g",)),))
T = TableName("t")
EXECUTORS = tuple(ExecutorId(f"e{number}") for number in (1, 2, 3))


async def table(folder: Path) -> StoredTable:
    return await parted(folder / "chunks", ROWS, "bucket(16, id)", keys=KEYS)


class Calls:
    """Counts the statements and tasks that executors receive."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.whole: Counter[ExecutorId] = Counter()
        self.planned = 0
        execute = cluster.fleet.execute

        async def counted(
            executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
        ) -> BatchStream:
            self.whole[executor_id] += 1
            return await execute(executor_id, query_id, statement, catalog)

        cluster.fleet.execute = counted  # type: ignore[method-assign]
        cluster.tallies.planned = self._plan  # type: ignore[method-assign]

    def _plan(self, duration_ms: float) -> None:
        self.planned += 1


async def test_a_lookup_is_one_call_to_the_owner(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        assert await cluster.dispatch.load(T, spec) == 1000
        for chunk in (tmp_path / "chunks").rglob("*.arrow"):
            chunk.unlink()
        holders = dealing.holders(spec, EXECUTORS)
        calls = Calls(cluster)
        for number in range(0, 1000, 37):
            found = await cluster.execute(f"SELECT v, id FROM t WHERE id = {number}")
            assert found.to_pylist() == [{"v": number * 2, "id": number}]
        assert sum(calls.whole.values()) == 28 and calls.planned == 0
        assert calls.whole.keys() == {each for ids in holders.values() for each in ids}
        assert (await cluster.execute("SELECT v FROM t WHERE id = 5000")).num_rows == 0


async def test_what_no_single_executor_has_runs_in_stages(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, {"t": await table(tmp_path)}, executors=3) as cluster:
        calls = Calls(cluster)
        many = ", ".join(map(str, range(20)))
        found = await cluster.execute(f"SELECT id FROM t WHERE id IN ({many})")
        assert sorted(row["id"] for row in found.to_pylist()) == list(range(20))
        assert (await cluster.execute("SELECT id FROM t WHERE g = 7")).num_rows == 500
        assert not calls.whole and calls.planned == 2


async def test_a_small_table_is_looked_up_on_any_executor(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, policy=Policy()) as cluster:
        calls = Calls(cluster)
        for sql in ("SELECT v FROM t WHERE id = 7", "SELECT v FROM t WHERE g = 7 LIMIT 1"):
            assert (await cluster.execute(sql)).num_rows == 1
        assert sum(calls.whole.values()) == 2 and calls.planned == 0


async def test_a_lookup_survives_the_loss_of_its_owner(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        lost = EXECUTORS[1]
        await cluster.fleet.lose(lost)
        for number in range(0, 1000, 53):
            statement = Statement("SELECT v FROM t WHERE id = $1", {"1": number})
            stream = await cluster.dispatch.execute(new_query_id(), statement)
            assert [row async for batch in stream for row in batch.to_pylist()] == [
                {"v": number * 2}
            ]
