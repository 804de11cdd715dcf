"""A scheduler's engine that exchanges only values with its caller, as between processes."""

import pickle
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.ids import PrincipalId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.protocols.embedding import NO_EMBEDDING
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import CatalogSnapshot, Statement, SystemTable
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.routing import Decision, Described, PlanId, Prepared, Question
from caraway_engine.stages import Measured, StageGraph
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.statements.scheduler_engine import SchedulerEngine

_Value = TypeVar("_Value")


def crossed(value: _Value) -> _Value:
    """Return a value as another process receives it."""
    made: _Value = pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    return made


class WalledEngine:
    """Wraps an engine; callers get only copies of values, batches and errors."""

    def __init__(self, settings: EngineSettings) -> None:
        self.inner = SchedulerEngine(LocalExecutor(settings))

    async def prepare(self, snapshot: CatalogSnapshot) -> Prepared:
        system = {name: _Remote(make) for name, make in snapshot.system.items()}
        sent = crossed(replace(snapshot, system={}, embedding=NO_EMBEDDING))
        sent = replace(sent, system=system, embedding=snapshot.embedding)
        return crossed(await self.inner.prepare(sent))

    async def publish(self) -> None:
        await self.inner.publish()

    async def release(self, pinned: Pinned) -> None:
        await self.inner.release(crossed(pinned))

    async def decide(self, question: Question) -> Decision:
        with _Errors():
            return crossed(await self.inner.decide(crossed(question)))

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        with _Errors():
            return crossed(await self.inner.advance(crossed(plan), crossed(measured)))

    async def describe(self, plan: PlanId) -> Described:
        with _Errors():
            return crossed(await self.inner.describe(crossed(plan)))

    async def forget(self, plan: PlanId) -> None:
        await self.inner.forget(crossed(plan))

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        with _Errors():
            return _Crossing(await self.inner.execute(crossed(query_id), crossed(statement)))

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        with _Errors():
            return crossed(await self.inner.ask(crossed(question)))

    async def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        with _Errors():
            return _Crossing(await self.inner.run_task(crossed(task), crossed(inputs)))

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        with _Errors():
            return _Crossing(await self.inner.stored(crossed(rows), crossed(order)))

    async def aclose(self) -> None:
        await self.inner.aclose()


class _Remote:
    """A system table that is built on the caller's side."""

    def __init__(self, make: SystemTable) -> None:
        self._make = make

    def __call__(self, viewer: PrincipalId | None) -> pa.Table:
        return crossed(self._make(crossed(viewer)))


class _Crossing:
    """A stream whose batches and errors are copies."""

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream
        self._batches = aiter(stream)
        self.schema: pa.Schema = crossed(stream.schema)
        self.reads_only_catalog = stream.reads_only_catalog
        self.written: TableName | None = stream.written
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        return self._stream.is_at_end

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        with _Errors():
            return crossed(await anext(self._batches))

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Errors:
    """Re-raises errors as copies, as another process receives them."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        if isinstance(exc, CarawayError):
            raise crossed(exc) from None
