"""Describes the stages of a running query."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import StageProgress, StageWork
from caraway_engine.stages import Stage
from caraway_scheduler.dispatch.stages.driving import Drive
from caraway_scheduler.dispatch.tasks.reports import FinishedTask


class Made(Protocol):
    """Knows the completed tasks of the stages before the last."""

    def made(self) -> list[FinishedTask]: ...


class Answer(Protocol):
    """The stream of the last stage."""

    ended: int

    @property
    def passed(self) -> tuple[int, int]: ...


def stages(drive: Drive, runner: Made, answer: Answer | None) -> tuple[StageProgress, ...]:
    """Return the stages as planned so far, each after those that it reads."""
    by_stage: dict[str, list[FinishedTask]] = {}
    for ran in runner.made():
        by_stage.setdefault(ran.stage, []).append(ran)
    progress = [
        _stage(stage, by_stage.get(stage.name, ()), is_begun=drive.is_begun(stage))
        for stage in drive.graph.stages.values()
    ]
    root = drive.graph.root
    if root is not None:
        progress.append(_root(root, answer, is_begun=drive.is_begun(root)))
    return tuple(progress)


def _stage(stage: Stage, tasks: Sequence[FinishedTask], *, is_begun: bool) -> StageProgress:
    return StageProgress(
        stage.name,
        stage.note,
        _state(len(tasks), stage.count, is_begun=is_begun),
        _reads(stage),
        tuple(sorted(stage.tables)),
        stage.count,
        len(tasks),
        sum(each.rows for each in tasks),
        sum(each.size_bytes for each in tasks),
        tuple(_by_executor(tasks)),
        min((each.ended_ns / 1e6 - each.elapsed_ms for each in tasks), default=None),
        max((each.ended_ns / 1e6 for each in tasks), default=None),
    )


def _root(stage: Stage, answer: Answer | None, *, is_begun: bool) -> StageProgress:
    """Describe the last stage: its rows pass through this process."""
    ended = answer.ended if answer is not None else 0
    rows, size_bytes = answer.passed if answer is not None else (0, 0)
    return StageProgress(
        stage.name,
        stage.note,
        _state(ended, stage.count, is_begun=is_begun),
        _reads(stage),
        tuple(sorted(stage.tables)),
        stage.count,
        ended,
        rows,
        size_bytes,
        (),
    )


def _state(done: int, total: int, *, is_begun: bool) -> Literal["waiting", "running", "done"]:
    if done >= total:
        return "done"
    return "running" if is_begun else "waiting"


def _reads(stage: Stage) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.stage for each in stage.readings))


def _by_executor(tasks: Sequence[FinishedTask]) -> Iterable[StageWork]:
    found: dict[ExecutorId | None, list[FinishedTask]] = {}
    for each in tasks:
        found.setdefault(each.executor_id, []).append(each)
    for executor_id, own in sorted(found.items(), key=lambda item: item[0] or ""):
        yield StageWork(
            executor_id,
            len(own),
            sum(each.rows for each in own),
            sum(each.size_bytes for each in own),
            sum(each.elapsed_ms for each in own),
        )
