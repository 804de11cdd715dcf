"""Runs the stages of one query on executors, and reruns tasks of lost executors."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    CarawayError,
    CatalogMovedError,
    ExecutionError,
    ExecutorLostError,
    ExecutorsLostError,
    OverloadedError,
    PartLostError,
    ShuttingDownError,
)
from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import (
    ExchangePart,
    Fleet,
    Input,
    Split,
    Task,
    TaskOutcome,
    TaskTable,
)
from caraway_core.protocols.offers import Offer
from caraway_core.protocols.storing import StoreOrder
from caraway_core.work import SubstraitFragment
from caraway_engine.stages import ExchangeRead, Measured, ReadMode, Stage
from caraway_scheduler.dispatch.tasks.placing import Slots
from caraway_scheduler.dispatch.tasks.reports import (
    FinishedTask,
    ReportedStream,
    WorkReports,
    bytes_of,
)
from caraway_scheduler.dispatch.tasks.staged_query import StagedQuery
from caraway_scheduler.dispatch.tasks.storing import Attempts, PersistentWord

logger = logging.getLogger(__name__)
ATTEMPTS = 3
READY_WAIT_S = 10.0
"""The time that a query waits for an executor if there is none: actors restart in seconds."""
HERE_BYTES = 1024 * 1024
Here = Callable[[Task, Sequence[TaskTable]], Coroutine[Any, Any, BatchStream]]
"""Runs a task in the scheduler's process."""
_Result = TypeVar("_Result")


class ReadyMembers(Protocol):
    """The executors of a cluster; membership implements it."""

    async def wait_ready(self, count: int, timeout_s: float) -> bool:
        """Return whether so many executors are ready, after waiting for them."""
        ...


class StageRunner:
    """Runs the tasks of stages, keeps their outputs, and reruns tasks whose output was lost.

    The caller must `close` it, which stops running tasks and releases all outputs.
    """

    def __init__(
        self,
        query: StagedQuery,
        fleet: Fleet,
        slots: Slots,
        reports: WorkReports,
        here: Here,
        members: ReadyMembers,
    ) -> None:
        self._members = members
        self._reports = reports
        self._here = here
        self.is_answered_here = False
        self._query = query
        self._fleet = fleet
        self._slots = slots
        self._stages: dict[str, Stage] = {}
        self._tasks: dict[tuple[str, int], asyncio.Task[TaskOutcome]] = {}
        self.ran: list[FinishedTask] = []

    async def run_stage(self, stage: Stage) -> Measured:
        """Run every task of a stage whose inputs are complete; return the size of its output."""
        self._stages[stage.name] = stage
        started = time.perf_counter()
        outcomes = await asyncio.gather(
            *(self._outcome(stage.name, number) for number in range(stage.count))
        )
        self._reports.tallies.stage_ended(stage.layout, (time.perf_counter() - started) * 1000)
        parts = [part for outcome in outcomes for part in outcome.parts]
        return Measured(sum(part.rows for part in parts), sum(part.size_bytes for part in parts))

    async def stream(self, stage: Stage, number: int) -> BatchStream:
        """Run a task of the last stage and stream its rows; rerun it if lost before the first row.

        If the rows are stored, the stream consists of chunk records, and the task can be rerun at
        any time.
        """
        order = self._query.store
        if order is None:
            began_s = time.perf_counter()
            stream = await self._opened(stage, number, lambda: None)
            if not self._query.is_profiled:
                return stream
            return ReportedStream(stream, partial(self._read, stage, number, stream, began_s))
        attempts = Attempts(order, number)

        async def again(cause: CarawayError) -> BatchStream:
            if isinstance(cause, ExecutorLostError):
                await self._lose(cause.executor_id, cause.cause)
            return await self._opened(stage, number, attempts.another)

        first = await self._opened(stage, number, attempts.another)
        return PersistentWord(first, attempts, again, ATTEMPTS - 1)

    async def _opened(
        self, stage: Stage, number: int, order: Callable[[], StoreOrder | None]
    ) -> BatchStream:
        if stage.layout == "single":
            here = await self._stream_here(stage, order)
            if here is not None:
                return here
        return await self._persistently(
            stage,
            number,
            lambda executor_id, task, inputs: self._fleet.stream(
                executor_id, replace(task, store=order()), inputs
            ),
        )

    async def _stream_here(
        self, stage: Stage, order: Callable[[], StoreOrder | None]
    ) -> BatchStream | None:
        """Run the last stage over few rows in the scheduler, which saves a call."""
        inputs = await self._inputs(stage, 0)
        if not inputs or bytes_of(inputs) > HERE_BYTES:
            return None
        try:
            tables = await self._fleet.fetch(inputs)
        except PartLostError as exc:
            self._forget(stage, inputs, exc.executor_id)
            return None
        self.is_answered_here = True
        return await self._here(replace(self._task(stage, 0), store=order()), tables)

    async def is_answered_soon(self, stage: Stage) -> bool:
        """Return whether the last stage is one task over few rows, which this process runs."""
        if stage.layout != "single":
            return False
        inputs = await self._inputs(stage, 0)
        return bool(inputs) and bytes_of(inputs) <= HERE_BYTES

    async def offer(self, stage: Stage, number: int, offer: Offer) -> ExecutorId:
        """Have an executor offer the rows of a task of the last stage; return which one does."""

        async def call(executor_id: ExecutorId, task: Task, inputs: Sequence[Input]) -> ExecutorId:
            await self._fleet.offer(executor_id, task, inputs, offer)
            return executor_id

        return await self._persistently(stage, number, call)

    @property
    def tasks_done(self) -> int:
        """The number of completed tasks of the stages before the last."""
        return sum(map(_is_made, self._tasks.values()))

    def made(self) -> list[FinishedTask]:
        """Return the completed tasks of the stages before the last, without lost ones."""
        newest = {(each.stage, each.number): each for each in self.ran}
        return [
            newest[key] for key, task in self._tasks.items() if key in newest and _is_made(task)
        ]

    def executor(self, number: int) -> ExecutorId:
        """Return the executor of a slot now."""
        return self._slots.executor(number)

    def close(self) -> None:
        """Cancel all tasks and release their outputs."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _outcome(self, name: str, number: int) -> asyncio.Task[TaskOutcome]:
        """Return the asyncio task that runs a task of a stage, starting it if necessary."""
        key = (name, number)
        task = self._tasks.get(key)
        if task is None:
            task = tasks.begin(self._run(self._stages[name], number))
            self._tasks[key] = task
        return task

    async def _run(self, stage: Stage, number: int) -> TaskOutcome:
        received_bytes, began_s = 0, time.perf_counter()

        async def call(executor_id: ExecutorId, task: Task, inputs: Sequence[Input]) -> TaskOutcome:
            nonlocal received_bytes, began_s
            received_bytes, began_s = bytes_of(inputs, executor_id), time.perf_counter()
            return await self._fleet.run_task(executor_id, task, inputs)

        outcome = await self._persistently(stage, number, call)
        ran = FinishedTask(
            self._query.query_id,
            stage.name,
            stage.note,
            number,
            outcome.parts[0].executor_id,
            sum(part.rows for part in outcome.parts),
            sum(part.size_bytes for part in outcome.parts),
            outcome.elapsed_ms,
            time.time_ns(),
            outcome.profile,
            (time.perf_counter() - began_s) * 1000,
            received_bytes,
        )
        self.ran.append(ran)
        self._reports.on_ran(ran)
        return outcome

    def _read(
        self,
        stage: Stage,
        number: int,
        stream: BatchStream,
        began_s: float,
        rows: int,
        size_bytes: int,
    ) -> None:
        """Note a task of the last stage whose rows were read."""
        elapsed_ms = (time.perf_counter() - began_s) * 1000
        profile = stream.traits.profile
        where = None if self.is_answered_here else self._slots.executor(number)
        ran = FinishedTask(self._query.query_id, stage.name, stage.note, number, where, rows,
                           size_bytes, elapsed_ms, time.time_ns(),
                           profile() if profile is not None else None, elapsed_ms)  # fmt: skip
        self.ran.append(ran)

    async def _persistently(
        self,
        stage: Stage,
        number: int,
        call: Callable[[ExecutorId, Task, Sequence[Input]], Coroutine[object, object, _Result]],
    ) -> _Result:
        """Call an executor; if it or an input is lost, recover and retry."""
        for attempt in range(1, ATTEMPTS + 1):
            inputs = await self._inputs(stage, number)
            executor_id = self._executor(stage, number, inputs)
            self._reports.tallies.assigned(executor_id)
            try:
                return await call(executor_id, self._task(stage, number), inputs)
            except ExecutorLostError as exc:
                await self._lose(exc.executor_id, exc.cause)
                await self._reports.on_loss(self._query.query_id, exc.executor_id)
                last: CarawayError = exc
            except ShuttingDownError as exc:
                # The executor drains: its outputs stay, but new work goes elsewhere.
                self._slots.lose(executor_id)
                last = exc
            except CatalogMovedError as exc:
                # The executor joined after the query's catalog was replaced; older executors still
                # have it.
                self._pass_over(executor_id, exc)
                last = exc
            except PartLostError as exc:
                self._forget(stage, inputs, exc.executor_id)
                last = exc
            logger.warning(
                "task is retried",
                extra={
                    "query_id": self._query.query_id, "stage": stage.name, "task": number,
                    "attempt": attempt, "cause": last.message,
                },
            )  # fmt: skip
        if isinstance(last, CatalogMovedError):
            raise last
        raise ExecutorsLostError(
            f"stage {stage.name} of the query failed {ATTEMPTS} times because executors were "
            f"lost, most recently: {last.message}; run it again when the cluster is healthy"
        ) from last

    def _pass_over(self, executor_id: ExecutorId, cause: CatalogMovedError) -> None:
        try:
            self._slots.lose(executor_id)
        except OverloadedError:
            raise cause from None  # No other executor is ready; a new plan can run on this one.

    def _executor(self, stage: Stage, number: int, inputs: Sequence[Input]) -> ExecutorId:
        if stage.layout == "single":
            return self._slots.nearest([part for each in inputs for part in each.parts])
        own = [reading.name for reading in stage.readings if reading.mode is ReadMode.OWN]
        parts = [part for each in inputs if each.name in own for part in each.parts]
        if parts and stage.layout == "slots":
            return self._slots.nearest(parts)
        return self._slots.executor(number)

    def _task(self, stage: Stage, number: int) -> Task:
        hashed, work = stage.hashed, stage.work(number)
        # Other work names what it reads by itself.
        shared = sorted(stage.tables) if isinstance(work, SubstraitFragment) else ()
        return Task(
            self._query.query_id,
            stage.name,
            self._query.catalog,
            self._query.catalog_version,
            work,
            stage.schema,
            tuple(self._query.shares(table)[number] for table in shared),
            Split(hashed.keys, hashed.count, hashed.extra) if hashed else None,
            in_background=self._query.in_background,
            logs=self._query.logs,
            found=self._query.found_in(work.plan) if isinstance(work, SubstraitFragment) else (),
            trace_id=self._query.trace_id,
            is_profiled=self._query.is_profiled,
        )

    async def _inputs(self, stage: Stage, number: int) -> list[Input]:
        return [
            Input(reading.name, reading.schema, tuple(await self._parts(stage, number, reading)))
            for reading in stage.readings
        ]

    async def _parts(self, stage: Stage, number: int, reading: ExchangeRead) -> list[ExchangePart]:
        source = self._stages[reading.stage]
        wanted = range(source.count)
        if reading.mode is ReadMode.OWN:
            # Task i of n reads the output of tasks i, i+n, ...: its own if the counts are equal.
            wanted = range(number, source.count, stage.count)
        outcomes = await asyncio.gather(*(self._outcome(source.name, each) for each in wanted))
        if reading.top is not None and any(
            part.rows > reading.top.count for outcome in outcomes for part in outcome.parts
        ):
            raise ExecutionError(
                f"a task of stage {source.name} left more rows than the best "
                f"{reading.top.count}; this is a fault of the planner: please report it"
            )
        if reading.mode is ReadMode.PARTITION:
            return [outcome.parts[number] for outcome in outcomes]
        return [part for outcome in outcomes for part in outcome.parts]

    async def _lose(self, executor_id: ExecutorId, cause: str) -> None:
        self._reports.on_lost(executor_id, cause)
        try:
            self._slots.lose(executor_id)
        except OverloadedError:
            if not await self._members.wait_ready(1, READY_WAIT_S):
                raise
            self._slots.lose(executor_id)
        for key, task in list(self._tasks.items()):
            if _is_made(task) and any(
                part.executor_id == executor_id for part in task.result().parts
            ):
                del self._tasks[key]

    def _forget(
        self, stage: Stage, inputs: Sequence[Input], executor_id: ExecutorId | None
    ) -> None:
        """Drop the lost inputs, so that the next request for them reruns their tasks."""
        held = {id(part) for each in inputs for part in each.parts}
        for reading in stage.readings:
            for each in range(self._stages[reading.stage].count):
                task = self._tasks.get((reading.stage, each))
                if task is None or not _is_made(task):
                    continue
                parts = task.result().parts
                is_lost = executor_id is None or any(
                    part.executor_id == executor_id for part in parts
                )
                if is_lost and any(id(part) in held for part in parts):
                    del self._tasks[(reading.stage, each)]


def _is_made(task: asyncio.Task[TaskOutcome]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
