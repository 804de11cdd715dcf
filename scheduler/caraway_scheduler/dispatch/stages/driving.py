"""Drives a query from plan to rows: plan, measure stages, continue planning, stream the last."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from caraway_core.concurrency import tasks
from caraway_core.protocols.dispatch import StatementProgress
from caraway_engine.stages import Measured, Stage, StageGraph
from caraway_scheduler.dispatch.tasks.running import StageRunner

Advance = Callable[[Mapping[str, Measured]], Awaitable[StageGraph]]
"""Continues the planning of a query with the measured sizes of completed stages."""


class Drive:
    """Drives one query through its stages.

    A stage starts as soon as its inputs are complete. When a stage completes whose size the planner
    waits for, planning continues, until the last stage is known.
    """

    def __init__(self, advance: Advance, graph: StageGraph, runner: StageRunner) -> None:
        self._advance = advance
        self._graph = graph
        self._runner = runner
        self._making: dict[str, asyncio.Task[Measured]] = {}
        self.measured: dict[str, Measured] = {}

    async def root(self) -> Stage:
        """Complete all inputs of the last stage, and return that stage."""
        try:
            while True:
                self._begin(self._graph)
                if self._graph.root is not None:
                    await self._wait([each.stage for each in self._graph.root.readings])
                    return self._graph.root
                await self._wait_for_news()
                self._graph = await self._advance(dict(self.measured))
        except BaseException:
            self.close()
            raise

    @property
    def graph(self) -> StageGraph:
        """The stage graph as planned so far."""
        return self._graph

    def progress(self, answered: int) -> StatementProgress:
        """Return the progress; `answered` counts the completed tasks of the last stage."""
        stages, root = self._graph.stages.values(), self._graph.root
        in_root = root.count if root is not None else 1
        return StatementProgress(
            len(self.measured) + (answered >= in_root),
            len(stages) + 1,
            self._runner.tasks_done + answered,
            sum(each.count for each in stages) + in_root,
        )

    def is_begun(self, stage: Stage) -> bool:
        """Return whether all that a stage reads is complete."""
        return all(each.stage in self.measured for each in stage.readings)

    def close(self) -> None:
        """Cancel the stages that still run."""
        for task in self._making.values():
            task.cancel()

    def _begin(self, graph: StageGraph) -> None:
        for name, stage in graph.stages.items():
            if name not in self._making:
                self._making[name] = tasks.begin(self._make(stage))

    async def _make(self, stage: Stage) -> Measured:
        await self._wait([each.stage for each in stage.readings])
        measured = await self._runner.run_stage(stage)
        self.measured[stage.name] = measured
        return measured

    async def _wait(self, names: list[str]) -> None:
        await asyncio.gather(*(asyncio.shield(self._making[name]) for name in names))

    async def _wait_for_news(self) -> None:
        waiting = [task for name, task in self._making.items() if not task.done()]
        if waiting:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in self._making.values():
            if task.done():
                task.result()
