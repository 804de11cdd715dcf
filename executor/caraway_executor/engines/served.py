"""The methods of an engine process, by name."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import CatalogSnapshot, ViewFacts
from caraway_core.tables import StoredTable
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.statements.scheduler_engine import SchedulerEngine

Calls = Mapping[str, Callable[..., Awaitable[Any]]]
Streams = Mapping[str, Callable[..., Awaitable[BatchStream]]]
Failed = dict[TableName, str]
Views = dict[TableName, ViewFacts]


class ServedMethods(Protocol):
    """The methods that return values, and those that return streams."""

    @property
    def executor(self) -> LocalExecutor: ...

    @property
    def calls(self) -> Calls: ...

    @property
    def streams(self) -> Streams: ...


class ServedExecutor:
    """Serves the executor of a standalone runtime."""

    def __init__(self, executor: LocalExecutor) -> None:
        self.executor = executor
        self.calls: Calls = {
            "install": self._install,
            "load": self._load,
            "put_back": executor.put_back,
            "ask": executor.ask,
        }
        self.streams: Streams = {"execute": executor.execute, "run": executor.run_task}

    async def _install(self, catalog: CatalogSnapshot) -> tuple[Failed, Views]:
        failed = await asyncio.to_thread(self.executor.install, catalog)
        return dict(failed), dict(self.executor.views)

    async def _load(
        self, table: TableName, spec: StoredTable, log: Log
    ) -> tuple[int, tuple[TableName, ...]]:
        rows = await self.executor.load(table, spec, log)
        return rows, self.executor.holds


class ServedScheduler:
    """Serves the engine of a scheduler."""

    def __init__(self, engine: SchedulerEngine) -> None:
        self.executor = engine.local
        self._engine = engine
        self.calls: Calls = {
            "install": self._install,
            "prepare": self._prepare,
            "publish": engine.publish,
            "release": engine.release,
            "decide": engine.decide,
            "advance": engine.advance,
            "describe": engine.describe,
            "forget": engine.forget,
            "ask": engine.ask,
        }
        self.streams: Streams = {
            "execute": engine.execute,
            "run": engine.run_task,
            "stored": engine.stored,
        }

    async def _install(self, catalog: CatalogSnapshot) -> tuple[Failed, Views]:
        answer = await self._prepare(catalog)
        await self._engine.publish()
        return answer

    async def _prepare(self, catalog: CatalogSnapshot) -> tuple[Failed, Views]:
        prepared = await self._engine.prepare(catalog)
        return dict(prepared.failed), dict(prepared.views)


def make(options: EngineOptions, threads: ThreadPoolExecutor) -> ServedMethods:
    """Build what a process with these options serves."""
    if options.serves == "scheduler":
        return ServedScheduler(
            SchedulerEngine(LocalExecutor(options.settings, planning=threads, may_block=True))
        )
    return ServedExecutor(
        LocalExecutor(options.settings, role=options.role, planning=threads, may_block=True)
    )
