"""A fleet whose executors only send heartbeats, for tests of membership."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

from caraway_core.changes import Log
from caraway_core.errors import CarawayError, ExecutorLostError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import (
    Description,
    Input,
    Pinned,
    TableCatalog,
    Task,
    TaskOutcome,
    TaskTable,
)
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_core.protocols.offers import Offer, OfferOutcome
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable


class FakeExecutor:
    """One fake executor; tests set its behaviour."""

    def __init__(self, executor_id: str, protocol_version: int = PROTOCOL_VERSION) -> None:
        self.description = Description(
            ExecutorId(executor_id),
            incarnation="first",
            protocol_version=protocol_version,
            build="9.9",
            address=f"{executor_id}.test",
            cores=2,
            memory_bytes=2**30,
        )
        self.is_silent = False
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.install_failures: Mapping[TableName, str] = {}
        self.probe_error: CarawayError | None = None
        self.refusals: list[str] = []
        self.probes = 0
        self.installs = 0

    def hang(self) -> None:
        """Block all calls except heartbeats until `hangs` is set."""
        self.hangs.clear()

    def change(self, **facts: object) -> None:
        self.description = replace(self.description, **facts)  # type: ignore[arg-type]

    def restart(self, incarnation: str = "second") -> None:
        self.change(incarnation=incarnation, catalogs={}, is_draining=False)


class FakeFleet:
    """A fleet of fake executors; `given_up` lists the executors whose calls were failed."""

    def __init__(self, *executor_ids: str) -> None:
        self.executors = {key: FakeExecutor(key) for key in executor_ids}
        self.given_up: list[str] = []
        self.rounds = 0
        self.error: Exception | None = None

    def add(self, executor: FakeExecutor) -> FakeExecutor:
        self.executors[executor.description.executor_id] = executor
        return executor

    def __getitem__(self, executor_id: str) -> FakeExecutor:
        return self.executors[executor_id]

    async def describe(
        self, origin: str = "", pinned: Pinned | None = None
    ) -> Sequence[Description]:
        self.rounds += 1
        if self.error is not None:
            raise self.error
        return [one.description for one in self.executors.values() if not one.is_silent]

    async def install(
        self, executor_id: ExecutorId, catalog: TableCatalog
    ) -> Mapping[TableName, str]:
        executor = await self._reached(executor_id)
        executor.installs += 1
        executor.change(catalogs={catalog.origin: catalog.version})
        return executor.install_failures

    async def load(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        chunks: Sequence[str],
        log: Log = (),
    ) -> int:
        raise NotImplementedError

    async def put_back(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        log: Log = (),
    ) -> int:
        raise NotImplementedError

    async def probe(self, executor_id: ExecutorId) -> None:
        executor = await self._reached(executor_id)
        executor.probes += 1
        if executor.probe_error is not None:
            raise executor.probe_error

    async def refuse(self, executor_id: ExecutorId, reason: str) -> None:
        (await self._reached(executor_id)).refusals.append(reason)

    def lost(self, executor_id: ExecutorId) -> None:
        self.given_up.append(executor_id)

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        raise NotImplementedError

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        raise NotImplementedError

    async def offer(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input], offer: Offer
    ) -> None:
        raise NotImplementedError

    async def attend(self, executor_id: ExecutorId, offer_id: str) -> OfferOutcome:
        raise NotImplementedError

    async def withdraw(self, executor_id: ExecutorId, offer_id: str, reason: CarawayError) -> None:
        raise NotImplementedError

    async def read_offer(self, executor_id: ExecutorId, offer_id: str) -> BatchStream:
        raise NotImplementedError

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        raise NotImplementedError

    async def host(self, executor_id: ExecutorId, order: CopyOrder) -> CopyStatus:
        raise NotImplementedError

    async def dismiss(self, executor_id: ExecutorId, holder: str, key: str) -> None:
        raise NotImplementedError

    def ask(self, executor_id: ExecutorId, key: str, request: bytes) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError

    async def execute(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        raise NotImplementedError

    async def aclose(self) -> None: ...

    async def _reached(self, executor_id: ExecutorId) -> FakeExecutor:
        executor = self.executors.get(executor_id)
        if executor is None or executor.is_silent:
            raise ExecutorLostError(executor_id, "it is gone")
        await executor.hangs.wait()
        return executor
