"""A joining executor loads its share of the accelerated datasets before it receives work."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.index_orders import IndexOrder, WordOrder
from caraway_core.statements import Statement
from caraway_core.tables import Keys
from caraway_engine.stages import Policy
from caraway_scheduler.membership import roll_call
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.stored import parted, stored
from tests.kit.turns import turn

ROWS = pa.table({"id": range(3000), "g": [n % 7 for n in range(3000)]})
SUM = "SELECT g, sum(id) AS s FROM t GROUP BY g ORDER BY g"
SUMS = [{"g": g, "s": sum(range(g, 3000, 7))} for g in range(7)]
T, E2, E3 = TableName("t"), ExecutorId("e2"), ExecutorId("e3")


async def joined(cluster: InProcessCluster, executor_id: ExecutorId, count: int) -> None:
    cluster.fleet.start(executor_id)

    async def look() -> bool:
        return len(cluster.membership.ready()) == count

    await eventually(look, f"{count} executors are ready")


@pytest.mark.parametrize("cut", ["bucket(16, id)", None])
@pytest.mark.parametrize("executor_id", [E2, E3])
async def test_no_statement_waits_for_the_rows_of_an_executor_that_joins(
    tmp_path: Path, cut: str | None, executor_id: ExecutorId
) -> None:
    folder = tmp_path / "chunks"
    spec = await (parted(folder, ROWS, cut, keys=Keys(("id",))) if cut else stored(folder, ROWS, 9))
    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        assert await cluster.dispatch.load(T, spec) == 3000
        if executor_id == E2:
            await cluster.fleet.lose(E2)
            cluster.membership.lost(E2, "it is gone")
        await joined(cluster, executor_id, 2 if executor_id == E2 else 3)
        for chunk in folder.rglob("*.arrow"):
            chunk.unlink()
        assert (await cluster.execute(SUM)).to_pylist() == SUMS


@pytest.mark.parametrize("policy", [EAGER, Policy()], ids=["shares", "whole"])
async def test_an_executor_that_joins_indexes_its_share_before_it_is_ready(
    tmp_path: Path, policy: Policy
) -> None:
    texts = pa.array([f"word{n} and more" for n in range(3000)])
    rows = ROWS.append_column("text", texts)
    spec = await parted(tmp_path / "chunks", rows, "bucket(16, id)", keys=Keys(("id",)))
    by = WordOrder(("text",), "", "english", (1.0,))
    told = IndexOrder(T, by, is_required=True, is_explained=True)

    async def indexed(cluster: InProcessCluster, order: IndexOrder) -> pa.Table:
        stream = await cluster.dispatch.execute(
            new_query_id(), Statement("SELECT 'no index'", {}, index=order)
        )
        return pa.Table.from_batches([batch async for batch in stream])

    async with in_process_cluster(tmp_path, {"t": spec}, policy=policy) as cluster:
        await cluster.dispatch.load(T, spec)
        assert sum((await indexed(cluster, told)).column("missing").to_pylist()) == 3000
        await indexed(cluster, replace(told, is_built=True))
        await cluster.fleet.lose(E2)
        cluster.membership.lost(E2, "it is gone")
        await joined(cluster, E3, 2)
        await joined(cluster, E2, 3)
        found = await indexed(cluster, told)
        assert found.num_rows == (3 if policy is EAGER else 1)
        assert sum(found.column("missing").to_pylist()) == 0
        assert sum(found.column("rows").to_pylist()) == 3000


async def test_copies_are_restored_after_an_executor_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "chunks"
    spec = replace(await parted(folder, ROWS, "bucket(16, id)", keys=Keys(("id",))), replicas=2)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        await cluster.dispatch.load(T, spec)
        keeping = asyncio.create_task(cluster.dispatch.warmer.run())
        await turn()
        cluster.fleet.loads = loads = list[ExecutorId]()
        await cluster.fleet.lose(E3)
        cluster.membership.lost(E3, "it is gone")

        async def look() -> bool:
            return len(loads) >= 2 * 2  # Each as the first and as the second owner.

        await eventually(look, "the others have loaded what they lack")
        keeping.cancel()
        await asyncio.wait((keeping,))
        for chunk in folder.rglob("*.arrow"):
            chunk.unlink()
        await cluster.fleet.lose(E2)
        cluster.membership.lost(E2, "it is gone")
        assert (await cluster.execute(SUM)).to_pylist() == SUMS


async def test_rows_that_cannot_be_loaded_do_not_keep_an_executor_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "chunks"
    spec = await stored(folder, ROWS, 9)
    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        for chunk in folder.rglob("*.arrow"):
            chunk.unlink()
        await joined(cluster, E3, 3)
        assert roll_call.TOO_LATE not in caplog.text

        async def hang(_executor_id: ExecutorId) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(roll_call, "PREPARE_S", 0.05)
        monkeypatch.setattr(cluster.dispatch, "prepare", hang)
        await joined(cluster, ExecutorId("e4"), 4)
        assert roll_call.TOO_LATE in caplog.text


async def test_the_only_executor_receives_work_before_its_rows_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = await stored(tmp_path / "chunks", ROWS, 9)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=1) as cluster:
        never = asyncio.Event()

        async def hangs(_executor_id: ExecutorId) -> None:
            await never.wait()

        monkeypatch.setattr(cluster.dispatch, "prepare", hangs)
        await cluster.fleet.lose(ExecutorId("e1"))
        cluster.membership.lost(ExecutorId("e1"), "it is gone")
        await joined(cluster, ExecutorId("e1"), 1)
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
