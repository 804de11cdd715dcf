"""The progress of the stages of a running query."""

import asyncio
from dataclasses import dataclass

from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.dispatch import StageWork
from caraway_scheduler.dispatch.stages import progressing
from caraway_scheduler.dispatch.tasks.reports import FinishedTask
from tests.kit.driving import Runner, driving, graph, stage, turns

E1, E2 = map(ExecutorId, ("e1", "e2"))


class CountingRunner(Runner):
    """Says which tasks it made."""

    def __init__(self, *ran: FinishedTask) -> None:
        super().__init__()
        self.ran = list(ran)

    def made(self) -> list[FinishedTask]:
        return self.ran


@dataclass
class Answer:
    ended: int
    passed: tuple[int, int]


def ran(name: str, number: int, executor_id: ExecutorId | None, ended_ms: float) -> FinishedTask:
    ended_ns = int(ended_ms * 1e6)
    return FinishedTask(QueryId("q"), name, "", number, executor_id, 10, 80, 5.0, ended_ns)


async def test_stages_wait_for_what_they_read() -> None:
    runner = CountingRunner()
    drive = driving(runner, graph(stage("r", "b"), stage("a", count=2), stage("b", "a", "a")))
    rooting = asyncio.ensure_future(drive.root())
    await turns()
    found = progressing.stages(drive, runner, None)
    assert [(each.name, each.state, each.reads) for each in found] == [
        ("a", "running", ()), ("b", "waiting", ("a",)), ("r", "waiting", ("b",)),
    ]  # fmt: skip
    runner.ran = [ran("a", 0, E1, 100), ran("a", 1, E2, 120)]
    runner.open("a")
    await turns()
    states = [each.state for each in progressing.stages(drive, runner, None)]
    assert states == ["done", "running", "waiting"]
    runner.open("b")
    await rooting
    runner.ran.append(ran("b", 0, None, 130))
    last = progressing.stages(drive, runner, Answer(0, (7, 56)))[-1]
    assert (last.state, last.rows, last.size_bytes, last.work) == ("running", 7, 56, ())
    assert progressing.stages(drive, runner, Answer(1, (9, 72)))[-1].state == "done"


async def test_completed_tasks_are_added_up_by_executor() -> None:
    runner = CountingRunner(
        ran("a", 1, E2, 100), ran("a", 0, E1, 90), ran("a", 2, E2, 130), ran("other", 0, E1, 1)
    )
    drive = driving(runner, graph(None, stage("a", count=4)))
    (found,) = progressing.stages(drive, runner, None)
    assert (found.tasks_done, found.tasks_total, found.state) == (3, 4, "running")
    assert (found.rows, found.size_bytes) == (30, 240)
    assert (found.began_at_ms, found.ended_at_ms) == (85, 130)
    assert found.work == (StageWork(E1, 1, 10, 80, 5.0), StageWork(E2, 2, 20, 160, 10.0))
    drive.close()


async def test_nothing_is_said_of_times_before_a_task_is_done() -> None:
    runner = CountingRunner()
    (found,) = progressing.stages(driving(runner, graph(stage("r"))), runner, None)
    assert (found.name, found.state, found.began_at_ms, found.ended_at_ms) == (
        "r", "running", None, None,
    )  # fmt: skip
