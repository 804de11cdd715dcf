"""The executor as a Ray actor."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import ray
import uvloop

from caraway_core import ray_nodes
from caraway_core.changes import Log
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import (
    AnswerPage,
    Description,
    OwnFile,
    Pinned,
    TableCatalog,
    Task,
    TaskReport,
    TaskTable,
)
from caraway_core.protocols.hosting import AnswerParts, CopyOrder, CopyStatus
from caraway_core.protocols.offers import Offer, OfferOutcome
from caraway_core.protocols.wire import RUN_CARRIED, ActorStatus, InputShape, SentPage
from caraway_core.ray_nodes import tied
from caraway_core.tables import StoredTable
from caraway_engine.execution import processes
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.endpoints import metrics
from caraway_executor.endpoints.channel_server import Calling, ChannelServer, Opening
from caraway_executor.endpoints.tallies import ExecutorTallies
from caraway_executor.part_options import PartServing
from caraway_executor.resources import ceilings
from caraway_executor.resources.endings import Ending
from caraway_executor.tasks.carried import CarriedTasks
from caraway_executor.tasks.host_files import HostFiles
from caraway_executor.tasks.worker import Worker

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
CALLS_AT_ONCE = 1000
ENDING = "last-end"
"""The file next to the file copies that records how the previous process ended."""
MODELS = "models"
"""The folder next to the file copies for the files of models."""
_CONTROL = (
    "describe", "standing", "cancel", "close", "drain", "refuse", "withdraw", "host", "dismiss",
    "end_ask",
)  # fmt: skip


class ExecutorActor:
    """A Ray actor that passes calls to the worker, which has its own event loop.

    Ray gives each concurrency group a loop and a thread. So calls of the control group are answered
    while other calls are running.
    """

    def __init__(
        self,
        identity: Description,
        settings: EngineSettings,
        files: Path,
        token_file: Path,
        serving: PartServing | None = None,
    ) -> None:
        # Ray's workers outlive a killed raylet by some seconds, and keep their memory in that time.
        tied.tie_to_parent()
        ceilings.be_first_to_go()
        processes.prepare()
        clock = time.monotonic
        last_end = Ending(files.with_name(ENDING)).begin_process()
        identity = replace(identity, last_end=last_end)
        host_files = HostFiles(files, clock)
        models = files.with_name(MODELS)
        self._worker = Worker(identity, settings, clock, host_files, models, is_relieved=True)
        self._loop = uvloop.new_event_loop()
        # Ray keeps what an actor is made with, hence the name of the file and not the token.
        self._listen(ray_nodes.read_token(token_file), identity.executor_id)
        threading.Thread(target=_run_worker, args=(self._loop,), name="worker", daemon=True).start()
        if serving is not None:
            # Imported here: its gRPC stack is slow to load, and few executors need it.
            from caraway_executor.endpoints.part_server import PartServer

            self._parts = PartServer(serving, identity.executor_id, self._worker.offers, self._loop)
            self._worker.serves_at(self._parts.place)
        self._installing = asyncio.Lock()
        self._executor_id = identity.executor_id
        self._tallies = ExecutorTallies()
        self._refusal = ""

    async def describe(self, origin: str = "", pinned: Pinned | None = None) -> Description:
        """See `Worker.describe`."""
        return await self._do(self._worker.describe(origin, pinned))

    async def standing(self) -> ActorStatus:
        """Return the description, metrics and state that the supervisor polls."""
        return await self._do(self._standing())

    async def missing(self, files: Sequence[OwnFile]) -> tuple[OwnFile, ...]:
        """See `Worker.missing`."""
        return await self._do(self._worker.missing(files))

    async def keep(self, file: OwnFile, content: pa.Buffer) -> None:
        """See `Worker.keep`."""
        await asyncio.to_thread(self._worker.keep, file, content)

    async def install(self, catalog: TableCatalog) -> Mapping[TableName, str]:
        """See `Worker.install`."""
        return await self._do(self._install(catalog))

    async def load(
        self,
        origin: str,
        table: TableName,
        spec: StoredTable,
        pieces: Sequence[str] | None = None,
        log: Log = (),
    ) -> int:
        """See `Worker.load`."""
        return await self._do(self._worker.load(origin, table, spec, pieces, log))

    async def put_back(
        self, origin: str, table: TableName, spec: StoredTable, log: Log = ()
    ) -> int:
        """See `Worker.put_back`."""
        return await self._do(self._worker.put_back(origin, table, spec, log))

    async def open(self, arguments: bytes) -> SentPage:
        """See `Worker.open`."""
        call, query_id, statement, origin = wire.unpack_call(arguments)
        return wire.pack(await self._do(self._worker.open(query_id, statement, origin, call)))

    async def open_task(self, arguments: bytes, *tables: pa.Table) -> SentPage:
        """See `Worker.open_task`. The tables of all inputs follow as separate objects."""
        call, task, inputs = wire.unpack_call(arguments)
        return wire.pack(await self._do(self._open_task(call, task, inputs, tables)))

    async def offer(self, arguments: bytes, *tables: pa.Table) -> None:
        """See `Worker.offer`. The tables of all inputs follow as separate objects."""
        call, task, offer, inputs = wire.unpack_call(arguments)
        await self._do(self._offer(call, task, offer, inputs, tables))

    async def attend(self, offer_id: str) -> OfferOutcome:
        """See `Worker.attend`."""
        return await self._do(self._worker.attend(offer_id))

    async def withdraw(self, offer_id: str, reason: CarawayError) -> None:
        """See `Worker.withdraw`."""
        await self._do(self._worker.withdraw(offer_id, reason))

    async def take(self, call: str, offer_id: str) -> SentPage:
        """See `Worker.read_offer`."""
        return wire.pack(await self._do(self._worker.read_offer(offer_id, call)))

    async def run(
        self, arguments: bytes, *tables: pa.Table
    ) -> tuple[TaskReport | pa.Table | None, ...]:
        """Run a task. The report is followed by its tables, each as a separate Ray object.

        Without a task, the tables of the call are those that it left; see `CarriedTasks`.
        """
        call, task, inputs = wire.unpack_call(arguments)
        if task is None:
            # It ran over a channel, and its tables are too large for that.
            return (None, *await self._do(self._worker.kept.take(call)))
        report, made = await self._do(self._run(call, task, inputs, tables))
        return (report, *made)

    async def next(self, cursor: str) -> SentPage:
        """See `Worker.next`."""
        return wire.pack(await self._do(self._worker.next(cursor)))

    async def close(self, cursor: str) -> None:
        """See `Worker.close`."""
        await self._do(self._worker.close(cursor))

    async def cancel(self, call: str) -> None:
        """See `Worker.cancel`."""
        await self._do(self._worker.cancel(call))

    async def drain(self) -> None:
        """See `Worker.drain`."""
        self._worker.drain()

    async def host(self, order: CopyOrder) -> CopyStatus:
        """See `Worker.host`."""
        return await self._do(self._worker.host(order))

    async def dismiss(self, holder: str, key: str) -> None:
        """See `ModelCopies.dismiss`."""
        await self._do(self._worker.dismiss(holder, key))

    async def ask(self, call: str, key: str, request: bytes) -> AnswerParts:
        """See `ModelCopies.ask`."""
        return await self._do(self._worker.models.ask(call, key, request))

    async def next_parts(self, call: str) -> AnswerParts:
        """See `ModelCopies.next`."""
        return await self._do(self._worker.models.next(call))

    async def end_ask(self, call: str) -> None:
        """See `ModelCopies.end`."""
        await self._do(self._worker.models.end(call))

    async def refuse(self, reason: str) -> None:
        """Record why a scheduler refuses this executor, for the readiness probe."""
        self._refusal = reason

    async def _standing(self) -> ActorStatus:
        description = await self._worker.describe()
        self._tallies.embedded = dict(self._worker.embedded)
        self._tallies.answered = dict(self._worker.models.answered)
        self._tallies.models = tuple(self._worker.models.names)
        page = metrics.render(self._tallies, description.active_tasks)
        return ActorStatus(description, self._refusal, page, os.getpid(), self._worker.stopped)

    def _listen(self, token: str, executor_id: ExecutorId) -> None:
        host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        carried = CarriedTasks(self._run, self._worker.kept)
        calling = Calling(self, {RUN_CARRIED: carried.run_task})
        try:
            server = ChannelServer(host, token, executor_id, Opening(self._worker), calling)
        except OSError as exc:
            # Ray listens on every address, so an executor may have one that is not of its host.
            extra = {"address": host, "cause": exc.strerror}
            logger.warning("no channels, so all calls come through Ray", extra=extra)
            return
        self._worker.is_called_at(server.place)
        self._serving = asyncio.run_coroutine_threadsafe(server.serve(), self._loop)

    async def _run(
        self, call: str, task: Task, inputs: Sequence[InputShape], tables: Sequence[pa.Table]
    ) -> tuple[TaskReport, tuple[pa.Table, ...]]:
        with self._counted(inputs, tables):
            report, made = await self._worker.run_task(task, _joined(inputs, tables), call)
        for rows, size_bytes in report.sizes:
            self._tallies.wrote(rows, size_bytes)
        return report, made

    async def _open_task(
        self, call: str, task: Task, inputs: Sequence[InputShape], tables: Sequence[pa.Table]
    ) -> AnswerPage:
        with self._counted(inputs, tables):
            return await self._worker.open_task(task, _joined(inputs, tables), call)

    async def _offer(
        self,
        call: str,
        task: Task,
        offer: Offer,
        inputs: Sequence[InputShape],
        tables: Sequence[pa.Table],
    ) -> None:
        with self._counted(inputs, tables):
            await self._worker.offer(task, _joined(inputs, tables), offer, call)

    @contextmanager
    def _counted(self, inputs: Sequence[InputShape], tables: Sequence[pa.Table]) -> Iterator[None]:
        makers = [maker for shape in inputs for maker in shape.makers]
        for maker, table in zip(makers, tables, strict=True):
            is_local = maker == self._executor_id
            self._tallies.read(table.num_rows, table.nbytes, is_local=is_local)
        started = time.perf_counter()
        try:
            yield
        finally:
            self._tallies.task_ended((time.perf_counter() - started) * 1000)

    async def _install(self, catalog: TableCatalog) -> Mapping[TableName, str]:
        async def installed() -> Mapping[TableName, str]:
            async with self._installing:
                return await asyncio.to_thread(self._worker.install, catalog)

        # A call ends with its channel, but a thread cannot be stopped: the next one has to wait.
        return await asyncio.shield(tasks.begin(installed()))

    async def _do(self, work: Coroutine[object, object, _Result]) -> _Result:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _run_worker(loop: asyncio.AbstractEventLoop) -> None:
    """Run the worker's loop. End the process when it stops, because calls would block forever."""
    try:
        loop.run_forever()
    except BaseException:
        logger.exception("the loop of the worker ended")
    finally:
        os._exit(1)


for _name in _CONTROL:
    ray.method(concurrency_group="control")(getattr(ExecutorActor, _name))


def _joined(inputs: Sequence[InputShape], tables: Sequence[pa.Table]) -> Sequence[TaskTable]:
    rest: Iterator[pa.Table] = iter(tables)
    return [
        TaskTable(shape.name, shape.schema, tuple(islice(rest, len(shape.makers))))
        for shape in inputs
    ]
