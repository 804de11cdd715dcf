"""Executors whose calls are answered over channels, without Ray."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from caraway_core.concurrency import tasks
from caraway_core.ids import ExecutorId
from caraway_core.protocols.wire import RUN_CARRIED
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.actor import ExecutorActor
from caraway_executor.endpoints.channel_server import Calling, ChannelServer, Opening
from caraway_executor.endpoints.tallies import ExecutorTallies
from caraway_executor.tasks.carried import CarriedTasks
from caraway_executor.tasks.host_files import HostFiles
from caraway_executor.tasks.worker import Worker
from tests.kit.workers import identity

ONE, TOKEN = ExecutorId("e1"), "token"


class Actor(ExecutorActor):
    """The calls of an executor's actor, without Ray, its thread and its port."""

    def __init__(self, name: ExecutorId, files: Path | None) -> None:
        copies = HostFiles(files, time.monotonic)
        self._worker = Worker(identity(name), EngineSettings(2), files=copies)
        self._loop: Any = asyncio.get_running_loop()
        self._installing = asyncio.Lock()
        self._executor_id = name
        self._tallies = ExecutorTallies()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("next", "close", "cancel", "describe"):
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)


class Remote:
    """An actor as Ray shows it: each result is a reference, which is resolved as an argument."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return _Method(self, name, getattr(self._actor, name))


class _Method:
    def __init__(self, owner: Remote, name: str, method: Any, results: int = 0) -> None:
        self._owner, self._name, self._method, self._results = owner, name, method, results

    def options(self, num_returns: int) -> "_Method":
        return _Method(self._owner, self._name, self._method, num_returns)

    def remote(self, *arguments: object) -> Any:
        self._owner.calls.append(self._name)
        answer = tasks.begin(self._call(arguments))
        if not self._results:
            return answer
        return [tasks.begin(_nth(answer, number)) for number in range(self._results)]

    async def _call(self, arguments: tuple[object, ...]) -> Any:
        resolved = [await each if isinstance(each, asyncio.Task) else each for each in arguments]
        return await self._method(*resolved)


async def _nth(answer: "asyncio.Task[Any]", number: int) -> Any:
    return (await asyncio.shield(answer))[number]


@asynccontextmanager
async def executor(
    name: ExecutorId = ONE, files: Path | None = None
) -> AsyncIterator[tuple[Actor, ChannelServer]]:
    actor = Actor(name, files)
    carried = CarriedTasks(actor._run, actor._worker.kept)
    calling = Calling(actor, {RUN_CARRIED: carried.run_task})
    server = ChannelServer("127.0.0.1", TOKEN, name, Opening(actor._worker), calling)
    serving = tasks.begin(server.serve())
    try:
        yield actor, server
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        await actor._worker.aclose()
