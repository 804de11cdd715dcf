"""Keeps an executor in its cluster: starts its Ray node and its actor, and restarts them."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from caraway_core import ray_nodes
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_core.process import exiting, ready_pipe
from caraway_core.protocols.fleet import Description
from caraway_core.protocols.wire import ActorStatus
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode
from caraway_core.settings import Address
from caraway_core.suspects import End
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.actor import ENDING
from caraway_executor.endpoints.probes import ActorAnswer
from caraway_executor.keeper import ActorFailedError, ActorKeeper
from caraway_executor.part_options import PartServing
from caraway_executor.resources import ceilings
from caraway_executor.resources.calm import AfterStop
from caraway_executor.resources.ceilings import Ceiling
from caraway_executor.resources.endings import Ending
from caraway_executor.resources.usage import wanted_s

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_CHECK_S = 1.0
_ANSWER_S = 2.0
_DEPLOY_S = 60.0
_HUNG_S = 60.0
"""An actor that does not respond for this long is replaced. Ray only notices actors that ended."""
_CALM_S = 3.0
_CALM_CORES = 0.9
"""An actor without work that still wants a core for this long ignores cancellation.

Installing catalogs is work, too, but never continuous.
"""
_LEAVE_S = 5.0
_END_S = 20.0
_ALONE_S = 2.0
"""The time that shutdown may take when there is nothing to wait for, with and without a head."""
_DELAYS = Delays(1.0, 10.0)


class Supervisor:
    """Runs one executor from start to stop."""

    def __init__(
        self,
        node: NodeOptions,
        identity: Description,
        engine: EngineSettings,
        files: Path,
        drain_timeout_s: float,
        ready_fd: int | None,
        serving: PartServing | None = None,
    ) -> None:
        self._node_options = node
        self._identity = identity
        self._engine = engine
        self._files = files
        self._parts = serving
        self._drain_timeout_s = drain_timeout_s
        self._ready_fd = ready_fd
        self._stopping = asyncio.Event()
        self._keeper = ActorKeeper(identity.executor_id)
        self._ending = Ending(files.with_name(ENDING))
        self._ceiling: Ceiling | None = None
        self._after_stop = AfterStop(_CALM_S, _CALM_CORES)
        self._refusal = ""
        self._served = False
        self._is_alone = False
        self.bound_end: Callable[[float], object] = lambda _within_s: None
        """Ends the process after a time limit; does nothing if the process is not ours to end."""
        self.metrics: Address | None = None
        self.flight = ""
        self.seen = ActorAnswer()

    async def run(self) -> None:
        """Serve until a signal, and rejoin the cluster whenever it was lost.

        Raises:
            CarawayError: it cannot leave Ray in order to rejoin.
        """
        self._listen()
        if limit := self._engine.memory_limit_bytes:
            self._ceiling = Ceiling(
                limit, self._ending.write, most_bytes=ceilings.of_executor(limit)
            )
        try:
            await self._serve_until_stopped()
        finally:
            if self._ceiling is not None:
                self._ceiling.close()

    async def _serve_until_stopped(self) -> None:
        again = Backoff(_DELAYS)
        while not self._stopping.is_set():
            self._served = False
            try:
                await self._live()
            except (NodeFailedError, ActorFailedError) as exc:
                if self._stopping.is_set():
                    break
                if self._served:
                    again.succeeded()
                delay_s = again.failed()
                logger.warning(
                    "rejoining the cluster", extra={"in_s": delay_s, "cause": exc.message}
                )
                await self._pause(delay_s)
        logger.info("executor stopped")

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop_signal)

    def _on_stop_signal(self) -> None:
        if self._stopping.is_set():
            # On a second signal, do not wait for the drain.
            self._drain_timeout_s = 0.0
        self._stopping.set()

    async def _live(self) -> None:
        """Join the cluster and serve until stopped or lost."""
        logger.info("executor joining", extra={"head": str(self._node_options.head)})
        node = await self._unless_stopped(RayNode.start(self._node_options))
        if node is None:
            return
        try:
            head, ip = self._node_options.head, self._node_options.node_ip
            variables = ray_nodes.environment(self._node_options.token_file)
            await asyncio.to_thread(self._keeper.join, head, ip, variables)
            # Ray has installed its own handler, which ends the process 3 s after a SIGTERM.
            self._listen()
            await self._serve(node)
        finally:
            self.seen.standing = None
            await self._leave(node)

    async def _serve(self, node: RayNode) -> None:
        ended = tasks.begin(node.wait())
        try:
            described = await self._deploy(ended)
            logger.info(
                "executor is up",
                extra={"executor_id": described.executor_id, "node_pid": node.pid},
            )
            self.flight = described.flight.location if described.flight else ""
            self._say_ready()
            self._served = True
            await self._watch(ended)
        finally:
            ended.cancel()
        if self._stopping.is_set():
            head = self._node_options.head
            self._is_alone = not await exiting.unless_gone(self._drain(), head)
            # Ray's calls wait for a missing head, and Python would wait for their threads.
            self.bound_end(_ALONE_S if self._is_alone else _END_S)
        await asyncio.to_thread(self._keeper.end)

    async def _deploy(self, ended: asyncio.Future[int]) -> Description:
        """Create the actor, and wait for its first heartbeat as long as the node runs.

        Raises:
            NodeFailedError: the node ended; its head may be that of another cluster.
            ActorFailedError: the actor is not up in time.
        """
        await asyncio.to_thread(
            self._keeper.deploy,
            self._identity,
            self._engine,
            self._files,
            self._node_options.token_file.absolute(),
            self._parts,
        )
        loop = asyncio.get_running_loop()
        until = loop.time() + _DEPLOY_S
        while True:
            described = await asyncio.to_thread(self._keeper.described, _ANSWER_S)
            if described is not None:
                return described
            _require_running(ended)
            if loop.time() > until:
                raise ActorFailedError(f"the actor is not up after {_DEPLOY_S:g} s")

    async def _watch(self, ended: asyncio.Future[int]) -> None:
        """Poll the actor until the executor must stop.

        Raises:
            NodeFailedError: the node ended.
            ActorFailedError: the actor hangs.
        """
        loop = asyncio.get_running_loop()
        answered_at = loop.time()
        while not self._stopping.is_set():
            _require_running(ended)
            try:
                self._note(await asyncio.to_thread(self._keeper.standing, _ANSWER_S))
                answered_at = loop.time()
            except ActorFailedError as exc:
                self.seen.standing = None
                logger.warning("actor does not respond", extra={"cause": exc.message})
                if loop.time() - answered_at > _HUNG_S:
                    raise
            await self._pause(_CHECK_S, ended)

    def _note(self, standing: ActorStatus) -> None:
        self.seen.standing = standing
        if self._ceiling is not None and standing.pid:
            self._ceiling.follow(standing.pid)
            self._look_at_rest(self._ceiling, standing)
        if standing.refusal != self._refusal:
            self._refusal = standing.refusal
            if standing.refusal:
                logger.error("refused by a scheduler", extra={"reason": standing.refusal})

    def _look_at_rest(self, ceiling: Ceiling, standing: ActorStatus) -> None:
        """End an actor that keeps computing after its work was cancelled or finished."""
        if self._after_stop.look(
            standing.pid,
            asyncio.get_running_loop().time(),
            wanted_s(standing.pid),
            active=standing.description.active_tasks,
            stopped=standing.stopped,
        ):
            ceiling.end(standing.pid, End("hung", "work continued after it was cancelled"))

    async def _drain(self) -> None:
        """Take no new work, and wait for running work up to the time limit."""
        logger.info("draining", extra={"at_most_s": self._drain_timeout_s})
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            await asyncio.to_thread(self._keeper.drain, _ANSWER_S)
            while loop.time() - started < self._drain_timeout_s:
                standing = await asyncio.to_thread(self._keeper.standing, _ANSWER_S)
                self.seen.standing = standing
                if not standing.description.active_tasks:
                    return
                await asyncio.sleep(0.1)
        except ActorFailedError as exc:
            logger.warning("cannot drain", extra={"cause": exc.message})
        else:
            logger.warning("running work is cancelled", extra={"after_s": self._drain_timeout_s})

    async def _leave(self, node: RayNode) -> None:
        try:
            async with asyncio.timeout(_LEAVE_S):
                await asyncio.to_thread(self._keeper.leave)
        except TimeoutError:
            if not self._stopping.is_set():
                raise CarawayError(
                    "Ray cannot disconnect from the lost cluster; restart the executor"
                ) from None
        finally:
            await node.stop()

    def _say_ready(self) -> None:
        facts = {"executor_id": self._identity.executor_id, "metrics": self.metrics or ""}
        if self.flight:
            facts["flight"] = self.flight
        fd, self._ready_fd = self._ready_fd, None
        ready_pipe.write(fd, facts)

    async def _unless_stopped(self, work: Coroutine[object, object, _Result]) -> _Result | None:
        task = tasks.begin(work)
        stopping = tasks.begin(self._stopping.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return None
        finally:
            stopping.cancel()

    async def _pause(self, delay_s: float, *ends: asyncio.Future[Any]) -> None:
        """Wait, but stop early if the executor must stop or another future is done."""
        stopping: asyncio.Future[object] = tasks.begin(self._stopping.wait())
        await asyncio.wait([stopping, *ends], timeout=delay_s, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()


def _require_running(ended: asyncio.Future[int]) -> None:
    """Raise NodeFailedError if the node ended."""
    if ended.done():
        raise NodeFailedError(f"the Ray node ended with exit code {ended.result()}")
