"""A fleet whose executors run in this process."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, ExecutorLostError, PartLostError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import (
    ANSWER_S,
    AnswerPage,
    Description,
    ExchangePart,
    Input,
    OwnFile,
    Pinned,
    TableCatalog,
    Task,
    TaskOutcome,
    TaskTable,
)
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_core.protocols.offers import FlightPlace, Offer, OfferOutcome
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.worker import Worker
from caraway_scheduler.dispatch.fleets import own_files, paging
from caraway_scheduler.dispatch.fleets.paging import PagedStream

_Result = TypeVar("_Result")


@dataclass(eq=False, slots=True)
class _Life:
    """An executor from its start until it is lost."""

    worker: Worker
    lost: bool = False
    calls: set["asyncio.Future[Any]"] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Held:
    """A table of an exchange, which is lost with the executor that made it."""

    table: pa.Table
    life: _Life


class InProcessFleet:
    """A fleet of workers in this process; tests add and remove them by `start` and `lose`."""

    def __init__(self, executor_ids: Sequence[ExecutorId], settings: EngineSettings) -> None:
        self._settings = settings
        self._lives: dict[ExecutorId, _Life] = {}
        self.refused: dict[ExecutorId, str] = {}
        self.places: dict[ExecutorId, FlightPlace] = {}
        for executor_id in executor_ids:
            self.start(executor_id)

    def start(self, executor_id: ExecutorId) -> None:
        """Start an executor, or restart it."""
        identity = Description(
            executor_id,
            incarnation="",
            protocol_version=PROTOCOL_VERSION,
            build="",
            address="in-process",
            cores=self._settings.target_partitions,
            memory_bytes=self._settings.memory_limit_bytes or 0,
            flight=self.places.get(executor_id),
        )
        self._lives[executor_id] = _Life(Worker(identity, self._settings))

    async def lose(self, executor_id: ExecutorId) -> None:
        """Kill an executor: its calls fail, and its tables are lost."""
        life = self._lives[executor_id]
        self.lost(executor_id)
        life.lost = True
        await life.worker.aclose()

    def lost(self, executor_id: ExecutorId) -> None:
        for call in list(self._lives[executor_id].calls):
            call.cancel()

    async def describe(
        self, origin: str = "", pinned: Pinned | None = None
    ) -> Sequence[Description]:
        asked = [self._described(each, origin, pinned) for each in self._lives]
        return [answer for answer in await asyncio.gather(*asked) if answer is not None]

    async def install(
        self, executor_id: ExecutorId, catalog: TableCatalog
    ) -> Mapping[TableName, str]:
        for file in await self._call(executor_id, lambda worker: worker.missing(catalog.files)):
            content = await asyncio.to_thread(own_files.content, file)
            await self._call(executor_id, partial(_keep, file, content))
        return await self._call(
            executor_id, lambda worker: asyncio.to_thread(worker.install, catalog)
        )

    async def load(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        chunks: Sequence[str],
        log: Log = (),
    ) -> int:
        return await self._call(
            executor_id, lambda worker: worker.load(origin, table, spec, chunks, log)
        )

    async def put_back(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        log: Log = (),
    ) -> int:
        return await self._call(
            executor_id, lambda worker: worker.put_back(origin, table, spec, log)
        )

    async def probe(self, executor_id: ExecutorId) -> None:
        await self._call(executor_id, lambda worker: worker.probe())

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        brought = _brought(inputs)
        life = self._lives[executor_id]
        report, tables = await self._call(
            executor_id, lambda worker: worker.run_task(task, brought)
        )
        parts = (
            ExchangePart(_Held(table, life), executor_id, rows, size_bytes)
            for table, (rows, size_bytes) in zip(tables, report.sizes, strict=True)
        )
        return TaskOutcome(tuple(parts), report.elapsed_ms, report.profile)

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        brought = _brought(inputs)
        page = await self._call(executor_id, lambda worker: worker.open_task(task, brought))
        return self._paged(executor_id, page)

    async def offer(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input], offer: Offer
    ) -> None:
        brought = _brought(inputs)
        await self._call(executor_id, lambda worker: worker.offer(task, brought, offer))

    async def attend(self, executor_id: ExecutorId, offer_id: str) -> OfferOutcome:
        return await self._call(executor_id, lambda worker: worker.attend(offer_id))

    async def withdraw(self, executor_id: ExecutorId, offer_id: str, reason: CarawayError) -> None:
        life = self._lives[executor_id]
        if not life.lost:
            await life.worker.withdraw(offer_id, reason)

    async def read_offer(self, executor_id: ExecutorId, offer_id: str) -> BatchStream:
        page = await self._call(executor_id, lambda worker: worker.read_offer(offer_id, offer_id))
        return self._paged(executor_id, page)

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        return _brought(inputs)

    async def execute(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        page = await self._call(
            executor_id, lambda worker: worker.open(query_id, statement, catalog)
        )
        return self._paged(executor_id, page)

    async def host(self, executor_id: ExecutorId, order: CopyOrder) -> CopyStatus:
        return await self._call(executor_id, lambda worker: worker.host(order))

    async def dismiss(self, executor_id: ExecutorId, holder: str, key: str) -> None:
        await self._call(executor_id, lambda worker: worker.dismiss(holder, key))

    def ask(self, executor_id: ExecutorId, key: str, request: bytes) -> AsyncGenerator[bytes, None]:
        call = uuid.uuid4().hex
        life = self._lives[executor_id]
        return paging.copy_parts(
            lambda: self._call(executor_id, lambda each: each.models.ask(call, key, request)),
            lambda: self._call(executor_id, lambda each: each.models.next(call)),
            lambda: life.worker.models.end(call),
        )

    async def refuse(self, executor_id: ExecutorId, reason: str) -> None:
        self.refused[executor_id] = reason

    async def aclose(self) -> None:
        for executor_id, life in self._lives.items():
            if not life.lost:
                await self.lose(executor_id)

    async def _described(
        self, executor_id: ExecutorId, origin: str, pinned: Pinned | None
    ) -> Description | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._call(executor_id, lambda worker: worker.describe(origin, pinned))
        except (TimeoutError, CarawayError):
            return None

    def _paged(self, executor_id: ExecutorId, page: AnswerPage) -> PagedStream:
        return PagedStream(page, _LifePages(self, executor_id, self._lives[executor_id]))

    async def next_page(self, executor_id: ExecutorId, life: _Life, cursor: str) -> AnswerPage:
        return await self._called(executor_id, life, life.worker.next(cursor))

    async def _call(
        self, executor_id: ExecutorId, start: Callable[[Worker], Coroutine[Any, Any, _Result]]
    ) -> _Result:
        life = self._lives.get(executor_id)
        if life is None or life.lost:
            raise ExecutorLostError(executor_id, "it is gone")
        return await self._called(executor_id, life, start(life.worker))

    async def _called(
        self, executor_id: ExecutorId, life: _Life, work: Coroutine[Any, Any, _Result]
    ) -> _Result:
        """Wait for a call; it ends when this task is cancelled or the executor is lost."""
        if life.lost:
            work.close()
            raise ExecutorLostError(executor_id, "it is gone")
        call = tasks.begin(work)
        life.calls.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ExecutorLostError(executor_id, "it went away during the call") from None
        finally:
            life.calls.discard(call)


def _keep(file: OwnFile, content: pa.Buffer, worker: Worker) -> Coroutine[Any, Any, None]:
    return asyncio.to_thread(worker.keep, file, content)


def _brought(inputs: Sequence[Input]) -> list[TaskTable]:
    """Fetch the tables of the inputs.

    Raises:
        PartLostError: a table is lost.
    """
    for part in (part for each in inputs for part in each.parts):
        if part.handle.life.lost:
            raise PartLostError(
                f"a table that executor '{part.executor_id}' made is gone with it",
                part.executor_id,
            )
    return [
        TaskTable(each.name, each.schema, tuple(part.handle.table for part in each.parts))
        for each in inputs
    ]


@dataclass(frozen=True, slots=True)
class _LifePages:
    """The pages of answers of one life of an executor."""

    fleet: InProcessFleet
    executor_id: ExecutorId
    life: _Life

    async def fetch_page(self, cursor: str) -> AnswerPage:
        return await self.fleet.next_page(self.executor_id, self.life, cursor)

    async def close_answer(self, cursor: str) -> None:
        await self.life.worker.close(cursor)
