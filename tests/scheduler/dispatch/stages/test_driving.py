"""The order of stages: each begins when its inputs are ready, and planning goes on with sizes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caraway_core.protocols.dispatch import StatementProgress
from caraway_engine.stages import Measured, StageGraph
from caraway_scheduler.dispatch.stages.driving import Drive
from tests.kit.driving import Runner, driving, graph, stage, turns


async def test_stages_that_read_nothing_begin_together_and_others_wait() -> None:
    runner = Runner()
    drive = driving(runner, graph(stage("r", "c"), stage("a"), stage("b"), stage("c", "a", "b")))
    rooting = asyncio.ensure_future(drive.root())
    await turns()
    assert runner.begun == ["a", "b"]
    runner.open("a")
    await turns()
    assert runner.begun == ["a", "b"]
    runner.open("b")
    await turns()
    assert runner.begun == ["a", "b", "c"] and not rooting.done()
    runner.open("c")
    assert (await rooting).name == "r"


async def test_root_without_readings_is_there_at_once() -> None:
    assert (await driving(Runner(), graph(stage("r"))).root()).name == "r"


async def test_planning_goes_on_with_each_size_until_there_is_a_root() -> None:
    runner, seen = Runner(), list[Mapping[str, Measured]]()
    a, bb = stage("a"), stage("bb", "a")
    drive = driving(
        runner, graph(None, a), graph(None, a, bb), graph(stage("r", "bb"), a, bb), seen=seen
    )
    rooting = asyncio.ensure_future(drive.root())
    runner.open("a", "bb")
    assert (await rooting).name == "r"
    assert [set(each) for each in seen] == [{"a"}, {"a", "bb"}]
    assert seen[1]["bb"] == Measured(2, 10)
    assert runner.begun == ["a", "bb"], "a stage is made once, however often planning goes on"


async def test_sizes_that_were_given_do_not_change_later() -> None:
    runner, seen = Runner(), list[Mapping[str, Measured]]()
    a, b = stage("a"), stage("b", "a")
    runner.open("a", "b")
    await driving(
        runner, graph(None, a), graph(None, a, b), graph(stage("r", "b"), a, b), seen=seen
    ).root()
    assert set(seen[0]) == {"a"}


@pytest.mark.parametrize("where", ["a", "b", "c"])
async def test_failure_of_a_stage_ends_the_query_and_stops_the_others(where: str) -> None:
    runner = Runner()
    runner.fails[where] = ValueError(f"{where} failed")
    drive = driving(runner, graph(stage("r", "c"), stage("a"), stage("b"), stage("c", "a", "b")))
    rooting = asyncio.ensure_future(drive.root())
    await turns()
    runner.open(where, *(("a", "b") if where == "c" else ()))
    await turns()
    with pytest.raises(ValueError, match=f"{where} failed"):
        await rooting
    await turns()
    assert all(task.done() for task in drive._making.values())


async def test_failure_of_planning_stops_the_stages_under_way() -> None:
    runner = Runner()

    async def advance(_: object) -> StageGraph:
        raise OSError("the planner is gone")

    any_runner: Any = runner
    drive = Drive(advance, graph(None, stage("a"), stage("b")), any_runner)
    rooting = asyncio.ensure_future(drive.root())
    await turns()
    runner.open("a")
    with pytest.raises(OSError, match="planner"):
        await rooting
    await turns()
    assert all(task.done() for task in drive._making.values())


async def test_cancelling_the_query_stops_every_stage() -> None:
    runner = Runner()
    drive = driving(runner, graph(stage("r", "b"), stage("a"), stage("b", "a")))
    rooting = asyncio.ensure_future(drive.root())
    await turns()
    rooting.cancel()
    await asyncio.wait((rooting,))
    await turns()
    assert rooting.cancelled() and all(task.done() for task in drive._making.values())


async def test_progress_counts_stages_and_tasks_of_the_last_one_too() -> None:
    runner = Runner()
    drive = driving(runner, graph(stage("r", "b", count=4), stage("a", count=3), stage("b", "a")))
    assert drive.progress(0) == StatementProgress(0, 3, 0, 8)
    runner.open("a", "b")
    await drive.root()
    assert drive.progress(0) == StatementProgress(2, 3, 4, 8)
    assert drive.progress(3) == StatementProgress(2, 3, 7, 8)
    assert drive.progress(4) == StatementProgress(3, 3, 8, 8)


async def test_progress_before_the_last_stage_is_planned_assumes_one_task() -> None:
    assert driving(Runner(), graph(None, stage("a", count=5))).progress(0) == StatementProgress(
        0, 2, 0, 6
    )
