"""Draining executors receive no more tasks, not even of running queries."""

from pathlib import Path

import pyarrow as pa

from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Task
from caraway_scheduler.dispatch.tasks.placing import Slots
from tests.kit.clusters import in_process_cluster
from tests.kit.tables import parquet
from tests.scheduler.dispatch.clustered import JOIN, ROWS, expected

E1, E2, E3 = map(ExecutorId, ("e1", "e2", "e3"))


async def test_running_query_continues_without_the_draining_executor(tmp_path: Path) -> None:
    numbers = range(ROWS)
    facts = pa.table({"k": [n % 700 for n in numbers], "v": list(numbers)})
    more = pa.table({"k": list(range(900)), "g": [n % 11 for n in range(900)]})
    tables = {"facts": parquet(tmp_path / "facts", facts, 4),
              "more": parquet(tmp_path / "more", more, 3)}  # fmt: skip
    async with in_process_cluster(tmp_path, tables, executors=3) as cluster:
        given: list[ExecutorId] = []
        asked = 0

        async def drain(executor_id: ExecutorId, task: Task) -> None:
            nonlocal asked
            if task.stage == "s3" and not asked:
                asked = 1
                await cluster.membership.drain(E1)
                given.clear()
            given.append(executor_id)

        cluster.fleet.before = drain
        assert (await cluster.execute(JOIN)).to_pylist() == expected()
        # A task that was already on its way may still run there: its task of s3.
        assert asked and given.count(E1) <= 1
        given.clear()
        assert (await cluster.execute(JOIN)).to_pylist() == expected()
        assert set(given) == {E2, E3}
        await cluster.membership.undo_drain(E1)
        assert await cluster.membership.wait_ready(3, 60)
        await cluster.execute(JOIN)
        assert E1 in given


def test_slots_of_a_leaving_executor_are_spread_evenly() -> None:
    leaving: set[ExecutorId] = set()
    slots = Slots(
        lambda: [e for e in (E1, E2, E3) if e not in leaving], (E1, E2, E3), leaving.__contains__
    )
    leaving.add(E1)
    assert [slots.executor(number) for number in range(3)] == [E2, E2, E3]
    assert slots.nearest([]) == E2


def test_last_executor_keeps_its_slots_while_it_leaves() -> None:
    leaving: set[ExecutorId] = set()
    slots = Slots(lambda: [e for e in (E1,) if e not in leaving], (E1, E1), leaving.__contains__)
    leaving.add(E1)
    assert [slots.executor(number) for number in range(2)] == [E1, E1]
