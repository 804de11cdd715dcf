"""Starts one process of a cluster, restarts it when it exits, and stops it."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from typing import Literal, Protocol

from caraway_cluster import plan as plans
from caraway_cluster.folder import ClusterFolder, ProcessStatus
from caraway_cluster.plan import ClusterPlan, ProcessSpec
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.ray_nodes import tied

logger = logging.getLogger(__name__)
State = Literal["starting", "up", "stopping", "waiting"]
_DELAYS = Delays(1.0, 10.0)
_STEADY_S = 60.0
_STOP_S = 20.0


class StatusBoard(Protocol):
    """Where the status of processes is shown; the supervisor implements it."""

    def publish_status(self) -> None:
        """Show the status of all processes as it is now."""
        ...


class SupervisedProcess:
    """A process that is restarted when it exits, and whose status is published on each change."""

    def __init__(
        self,
        plan: ClusterPlan,
        spec: ProcessSpec,
        folder: ClusterFolder,
        board: StatusBoard,
    ) -> None:
        self.spec = spec
        self._plan = plan
        self._folder = folder
        self._board = board
        self._state: State = "starting"
        self._process: asyncio.subprocess.Process | None = None
        self._endpoints: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._tasks = tasks.Tasks()
        self.starts = 0
        self.is_up = asyncio.Event()

    @property
    def status(self) -> ProcessStatus:
        process = self._process
        return ProcessStatus(
            name=self.spec.name,
            state=self._state,
            pid=process.pid if process and process.returncode is None else None,
            address=self.spec.address,
            restarts=max(0, self.starts - 1),
            log=str(self._folder.log(self.spec.name)),
            endpoints=self._endpoints,
        )

    async def keep_running(self) -> None:
        """Run the process until `stop` is called, restarting it with back-off."""
        loop = asyncio.get_running_loop()
        again = Backoff(_DELAYS)
        while not self._stopping.is_set():
            started = loop.time()
            code = await self._run()
            if self._stopping.is_set():
                break
            if loop.time() - started > _STEADY_S:
                again.succeeded()
            delay_s = again.failed()
            logger.warning(
                "process exited",
                extra={"child": self.spec.name, "code": code, "restart_in_s": delay_s},
            )
            self._set_state("waiting")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._stopping.wait()

    async def stop(self) -> None:
        """Stop the process and wait until it has exited."""
        self._stopping.set()
        process = self._process
        if process is not None and process.returncode is None:
            await self._terminate(process)

    async def _terminate(self, process: asyncio.subprocess.Process) -> None:
        self._set_state("stopping")
        process.terminate()
        try:
            async with asyncio.timeout(self._plan.drain_timeout_s + _STOP_S):
                await process.wait()
        except TimeoutError:
            logger.error("process killed", extra={"child": self.spec.name})
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _run(self) -> int:
        reader, writer = os.pipe()
        command = plans.command(self._plan, self.spec, self._folder.path, writer)
        self._endpoints = {}
        self.is_up.clear()
        self.starts += 1
        with self._folder.log(self.spec.name).open("ab") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *tied.tied(command), pass_fds=(writer,), stdin=asyncio.subprocess.DEVNULL,
                    stdout=log, stderr=log, start_new_session=True,
                    env={**os.environ, **plans.environment(self._plan, self.spec)},
                )  # fmt: skip
            finally:
                os.close(writer)
        if self._stopping.is_set():
            # `stop` was called while the process was starting, when there was nothing to stop yet.
            await self._terminate(self._process)
        else:
            self._set_state("starting")
        reading = self._tasks.spawn(
            self._read_ready(reader), "read the ready pipe", child=self.spec.name
        )
        try:
            return await self._process.wait()
        finally:
            reading.cancel()
            self.is_up.clear()

    async def _read_ready(self, reader: int) -> None:
        with os.fdopen(reader) as pipe:
            stream = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(stream)
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: protocol, pipe
            )
            try:
                line = await stream.readline()
            finally:
                transport.close()
        if line and not self._stopping.is_set():
            self._endpoints = json.loads(line)
            self._set_state("up")
            self.is_up.set()

    def _set_state(self, state: State) -> None:
        self._state = state
        self._board.publish_status()
