"""Queries over an in-process cluster that loses executors."""

import asyncio

import pytest

from caraway_core.errors import (
    AnswerCutError,
    ExecutionError,
    OverloadedError,
)
from caraway_core.ids import ExecutorId, new_query_id
from caraway_core.protocols.fleet import Task
from caraway_core.statements import Statement
from caraway_scheduler.dispatch.planning import asking
from caraway_scheduler.dispatch.tasks import running
from tests.kit.clusters import InProcessCluster
from tests.kit.faults import nothing
from tests.scheduler.dispatch.clustered import E1, E2, E3, JOIN, expected, on_three


def settle_soon(cluster: InProcessCluster) -> None:
    """Hold a statement back for less time that may have ended two executors."""
    cluster.dispatch.quarantine._settled_s = 0.3


@pytest.mark.parametrize("lost", [(E1,), (E2,), (E1, E3)])
@on_three
async def test_executors_lost_during_a_query_do_not_change_its_answer(
    cluster: InProcessCluster, lost: tuple[ExecutorId, ...]
) -> None:
    settle_soon(cluster)

    async def lose(_executor_id: ExecutorId, task: Task) -> None:
        if task.stage == "s3":
            cluster.fleet.before = unharmed
            for each in lost:
                await cluster.fleet.lose(each)

    async def unharmed(_executor_id: ExecutorId, _task: Task) -> None:
        return

    cluster.fleet.before = lose

    assert (await cluster.execute(JOIN)).to_pylist() == expected()
    assert cluster.fleet.before is unharmed


@on_three
async def test_the_output_of_a_lost_executor_is_computed_again(
    cluster: InProcessCluster,
) -> None:
    made: list[tuple[str, int]] = []
    groups = "SELECT g, count(*) AS n FROM more GROUP BY g ORDER BY g"
    counts = [{"g": g, "n": len(range(g, 900, 11))} for g in range(11)]

    async def lose(_executor_id: ExecutorId, task: Task) -> None:
        made.append((task.stage, hash(task.shares)))
        if len(made) == 6:
            await cluster.fleet.lose(E2)

    cluster.fleet.after = lose

    assert (await cluster.execute(groups)).to_pylist() == counts
    assert len(made) > len(set(made)), "a part was made twice"


@on_three
async def test_without_any_executor_the_query_ends_with_a_clear_error(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "READY_WAIT_S", 0.2)
    monkeypatch.setattr(running, "READY_WAIT_S", 0.2)

    async def lose(_executor_id: ExecutorId, _task: Task) -> None:
        for each in (E1, E2, E3):
            await cluster.fleet.lose(each)

    cluster.fleet.before = lose

    with pytest.raises(OverloadedError, match="no executor is ready"):
        await cluster.execute(JOIN)


@on_three
async def test_a_query_waits_for_executors_that_return(cluster: InProcessCluster) -> None:
    settle_soon(cluster)

    async def lose(_executor_id: ExecutorId, _task: Task) -> None:
        cluster.fleet.before = nothing
        for each in (E1, E2, E3):
            await cluster.fleet.lose(each)
            cluster.membership.lost(each, "killed")
        asyncio.get_running_loop().call_later(0.3, cluster.fleet.start, E2)

    cluster.fleet.before = lose

    assert (await cluster.execute(JOIN)).to_pylist() == expected()


@on_three
async def test_a_loss_during_an_answer_ends_it_with_an_error(
    cluster: InProcessCluster,
) -> None:
    sql = "SELECT a.v, b.v AS w FROM facts a JOIN facts b ON a.k % 3 = b.k % 3"
    stream = await cluster.dispatch.execute(new_query_id(), Statement(sql, {}))
    await anext(aiter(stream))
    for each in (E1, E2, E3):
        await cluster.fleet.lose(each)

    with pytest.raises(AnswerCutError, match="the answer was cut short"):
        async for _ in stream:
            pass

    assert len(cluster.membership.ready()) < 3


@on_three
async def test_a_task_that_always_loses_its_executor_fails(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HERE_BYTES", 0)

    async def lose(executor_id: ExecutorId, task: Task) -> None:
        if task.stage == "answer":
            await cluster.fleet.lose(executor_id)
            cluster.fleet.start(executor_id)
            assert await cluster.membership.wait_ready(3, 60)

    cluster.fleet.before = lose

    with pytest.raises(ExecutionError, match="failed 3 times because executors were lost"):
        await cluster.execute(JOIN)


@on_three
async def test_a_lost_executor_that_returns_receives_work_again(cluster: InProcessCluster) -> None:
    await cluster.fleet.lose(E2)
    assert (await cluster.execute(JOIN)).to_pylist() == expected()
    assert len(cluster.membership.ready()) == 2
    cluster.fleet.start(E2)

    assert await cluster.membership.wait_ready(3, 60)
    assert (await cluster.execute(JOIN)).to_pylist() == expected()
