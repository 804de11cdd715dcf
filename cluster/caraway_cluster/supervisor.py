"""Supervises the processes of a cluster on one machine and applies changes of its plan."""

import asyncio
import logging
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

from caraway_cluster import plan as plans
from caraway_cluster.folder import ClusterFolder, LocalClusterStatus
from caraway_cluster.plan import ClusterPlan
from caraway_cluster.process import SupervisedProcess
from caraway_core import ray_nodes
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError

logger = logging.getLogger(__name__)
_CHECK_S = 0.25
_READY_S = 240.0
_LOADING_S = 30.0
"""The wait of a start for datasets once it has its executors; large ones take hours."""
_START_TRIES = 3
OnReady = Callable[[LocalClusterStatus, str], None]
"""Called with the status and the components that are not loaded, once the cluster serves."""
_ANSWER_S = 2.0
_MISSING = "[-] components not ready: "
_NO_EXECUTORS = "[-] executors"
_STILL_LOADING = "(initializing"


@dataclass(frozen=True, slots=True)
class ClusterReadiness:
    """The answer of `/v1/ready`: the executors, and the components that cannot be used."""

    has_executors: bool
    missing: str = ""

    @property
    def is_loading(self) -> bool:
        """True if a component may become ready by itself."""
        return _STILL_LOADING in self.missing


class ClusterSupervisor:
    """Starts, restarts and stops the processes of a cluster.

    `announce` is called with a line of text for each state change of a process.
    """

    def __init__(self, folder: ClusterFolder, announce: Callable[[str], None]) -> None:
        self._folder = folder
        self._announce = announce
        self._plan = folder.read_plan()
        self._processes: dict[str, SupervisedProcess] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks = tasks.Tasks()
        self._announced: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._started = time.monotonic()
        self._deadline = 0.0

    async def run_cluster(self, on_ready: OnReady) -> None:
        """Start the cluster, run it until SIGTERM or SIGINT, and stop it.

        Raises:
            CarawayError: the cluster did not start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        ray_nodes.make_token(self._folder.token)
        try:
            missing = await self._start_all()
            if missing is not None:
                on_ready(self.status, missing)
                await self._apply_plan_changes()
        finally:
            await self._stop_all()

    @property
    def status(self) -> LocalClusterStatus:
        processes = [process.status for process in self._processes.values()]
        return LocalClusterStatus(os.getpid(), self._plan.executors, processes)

    async def _start_all(self) -> str | None:
        """Start all processes and wait until the cluster serves; None if stopped meanwhile.

        Returns the components that are not loaded: one broken dataset stops no cluster.
        """
        self._deadline = asyncio.get_running_loop().time() + _READY_S
        self._add("head")
        if not await self._wait_until(lambda: self._processes["head"].is_up.is_set()):
            return None
        for name in plans.processes(self._plan):
            if name not in self._processes:
                self._add(name)
        if not await self._wait_until(self._are_all_up):
            return None
        loaded_by = asyncio.get_running_loop().time() + _LOADING_S
        while True:
            cluster_readiness = await asyncio.to_thread(self._ask)
            if cluster_readiness is not None and cluster_readiness.has_executors:
                is_late = asyncio.get_running_loop().time() > min(loaded_by, self._deadline)
                if is_late or not cluster_readiness.is_loading:
                    return cluster_readiness.missing
            if not await self._check_once():
                return None

    async def _wait_until(self, condition: Callable[[], bool]) -> bool:
        """Wait until the condition is true; False if stopped meanwhile. Raises as `_check_once`."""
        while not condition():
            if not await self._check_once():
                return False
        return True

    async def _check_once(self) -> bool:
        """Check that the start can still succeed, and wait a moment; False if stopped meanwhile.

        Raises:
            CarawayError: the deadline passed, or a process keeps exiting.
        """
        for process in self._processes.values():
            if process.starts > _START_TRIES:
                raise self._start_error(process, f"exited {_START_TRIES} times")
        if asyncio.get_running_loop().time() > self._deadline:
            late = [each for each in self._processes.values() if not each.is_up.is_set()]
            if late:
                raise self._start_error(late[0], f"is not ready after {_READY_S:g} s")
            problem = f"does not have {self._plan.executors} ready executors after {_READY_S:g} s"
            raise self._start_error(self._processes["scheduler"], problem)
        return not await self._pause()

    def _start_error(self, process: SupervisedProcess, problem: str) -> CarawayError:
        name, log = process.spec.name, self._folder.log(process.spec.name)
        tail = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
        return CarawayError(f"{name} {problem}: {tail or 'its log is empty'} (see {log})")

    def _are_all_up(self) -> bool:
        return all(process.is_up.is_set() for process in self._processes.values())

    def _ask(self) -> ClusterReadiness | None:
        return ask_readiness(self.status.endpoints.get("metrics"), self._plan.executors)

    async def _apply_plan_changes(self) -> None:
        """Scale the cluster whenever the plan in the data directory changes, until stopped."""
        while not await self._pause():
            executors = self._folder.read_plan().executors
            if executors != self._plan.executors:
                self._scale(self._plan.scaled(executors))

    def _scale(self, plan: ClusterPlan) -> None:
        logger.info("scaling", extra={"from": self._plan.executors, "to": plan.executors})
        self._plan = plan
        specs = plans.processes(plan)
        for name in specs:
            if name not in self._processes:
                self._add(name)
        for name in [name for name in self._processes if name not in specs]:
            self._remove(name)
        self.publish_status()

    def _add(self, name: str) -> None:
        spec = plans.processes(self._plan)[name]
        process = SupervisedProcess(self._plan, spec, self._folder, self)
        previous = self._running.get(name)
        self._processes[name] = process
        self._running[name] = self._tasks.spawn(
            _run_after(previous, process), "supervise a process", self._on_failure, child=name
        )

    def _on_failure(self, _failure: BaseException) -> None:
        logger.error("a process is no longer supervised; stopping the cluster")
        self._stopping.set()

    def _remove(self, name: str) -> None:
        process, running = self._processes[name], self._running[name]

        async def stop() -> None:
            await process.stop()
            await running
            if self._processes.get(name) is process:
                del self._processes[name]
            self.publish_status()

        self._running[name] = self._tasks.spawn(stop(), "stop a process", child=name)

    async def _stop_all(self) -> None:
        # Executors first, because they drain. The head last, because the others need it to leave.
        for role in ("executor", "scheduler", "head"):
            leaving = [each for each in self._processes.values() if each.spec.role == role]
            await asyncio.gather(*(process.stop() for process in leaving))
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _pause(self) -> bool:
        """Wait a moment; return whether the supervisor was stopped."""
        stopping = tasks.begin(self._stopping.wait())
        await asyncio.wait((stopping,), timeout=_CHECK_S)
        stopping.cancel()
        return self._stopping.is_set()

    def publish_status(self) -> None:
        """Write the status of all processes, and announce what has changed."""
        status = self.status
        self._folder.write_status(status)
        for each in status.processes:
            if self._announced.get(each.name) != each.state:
                self._announced[each.name] = each.state
                elapsed_s = time.monotonic() - self._started
                self._announce(f"  {each.name:<12} {each.state:<9} {elapsed_s:5.1f} s")


async def _run_after(previous: asyncio.Task[None] | None, process: SupervisedProcess) -> None:
    """Run a process once the previous process with the same name has exited."""
    if previous is not None:
        await asyncio.wait((previous,))
    await process.keep_running()


def ask_readiness(metrics_address: str | None, executors: int) -> ClusterReadiness | None:
    """Ask the scheduler; return None if it does not answer. Blocks."""
    # The metrics port needs no API key and never uses TLS.
    url = f"http://{metrics_address}/v1/ready?min_ready_executors={executors}&verbose=true"
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
            return parse_readiness(answer.read().decode())
    except urllib.error.HTTPError as refusal:
        # A component or the gate is not ready.
        return parse_readiness(refusal.read().decode()) if refusal.code == 503 else None
    except (urllib.error.URLError, OSError, ValueError):
        return None


def parse_readiness(text: str) -> ClusterReadiness:
    """Parse a verbose answer, which has one line for each condition."""
    lines = text.splitlines()
    missing = [each.removeprefix(_MISSING) for each in lines if each.startswith(_MISSING)]
    has_executors = not any(each.startswith(_NO_EXECUTORS) for each in lines)
    return ClusterReadiness(has_executors, "".join(missing))
