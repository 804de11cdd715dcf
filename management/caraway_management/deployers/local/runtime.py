"""Brings the runtime of one project to the state of its plan, step by step."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_management.deployers.local import process
from caraway_management.deployers.local.folder import Plan, ProjectFolder
from caraway_management.domain.deployments import Code, Observed, Phase, Problem

Command = Callable[[ProjectFolder, Plan], list[str]]
logger = logging.getLogger(__name__)
_DELAYS = Delays(1.0, 30.0, jitter=0.2)
_STEADY_S = 60.0
STOP_S = 30.0
_PORT_TRIES = 3
_LARGEST_LOG = 64 * 1024 * 1024


class LocalRuntime:
    """The runtime of a folder. `step` never waits for it to start or to end."""

    def __init__(
        self,
        folder: ProjectFolder,
        plan: Plan,
        new_ports: Callable[[], tuple[int, int, int]],
        command: Command = process.command,
        *,
        keeps_environment: bool = False,
    ) -> None:
        self.plan = plan
        self.hidden: Mapping[str, str] = {}
        """Values that messages must not show, by their names."""
        self._folder = folder
        self._new_ports = new_ports
        self._command = command
        self._keeps_environment = keeps_environment
        self._again = Backoff(_DELAYS)
        self._started_pid: int | None = None
        """The process that this service has started, until it is seen to have ended."""
        self._started_at = 0.0
        self._start_at = 0.0
        self._stop_began: float | None = None
        self._port_tries = 0
        self._needs_reload = False
        self._problem: Problem | None = None
        self._is_ready = False

    @property
    def is_gone(self) -> bool:
        """True if it was removed completely."""
        return self.plan.is_removed and not self._folder.path.exists()

    def set_plan(self, plan: Plan, *, restarts: bool) -> None:
        """Take another plan; with `restarts` also if the deployment is the same."""
        if plan.deployment_id != self.plan.deployment_id or restarts:
            self._problem = None
            self._is_ready = False
            self._port_tries = 0
            self._start_at = 0.0
            self._again.succeeded()
        self.plan = plan

    def reload(self) -> None:
        """Have the runtime read its manifest and secrets again."""
        self._needs_reload = True

    def observe(self) -> Observed:
        """Return what the last step has seen."""
        plan = self.plan
        if plan.is_removed or not plan.is_running:
            return Observed(Phase.ABSENT)
        if self._problem is not None:
            return Observed(Phase.FAILED, plan.deployment_id, self._problem)
        http, flight, metrics = (f"{process.HOST}:{port}" for port in plan.ports)
        return Observed(
            Phase.READY if self._is_ready else Phase.STARTING, plan.deployment_id, None,
            f"http://{http}", f"grpc://{flight}", f"http://{metrics}",
        )  # fmt: skip

    async def step(self) -> None:
        """Look at the process, and do the next thing that brings it to the plan."""
        has_ended = self._reap()
        if self._folder.is_locked():
            await self._step_alive()
            return
        self._is_ready = False
        self._stop_began = None
        if self.plan.is_removed:
            await asyncio.to_thread(self._folder.remove)
        elif self.plan.is_running:
            self._step_dead(has_ended)

    async def _step_alive(self) -> None:
        plan, now = self.plan, asyncio.get_running_loop().time()
        found = self._folder.read_process()
        if found is None:
            return  # It has not recorded itself yet.
        if not process.exists(found.id):
            # Something that it has started outlives it, and has its lock.
            process.send(self._folder, signal.SIGKILL)
            return
        if not plan.is_running or plan.is_removed or found.deployment_id != plan.deployment_id:
            self._is_ready = False
            self._stop(now)
            return
        self._is_ready = await asyncio.to_thread(process.is_ready, plan.ports[2])
        if self._is_ready:
            self._note_ready(now)
        self._bound_log()

    def _note_ready(self, now: float) -> None:
        if not self.plan.has_served:
            self.plan = self.plan.with_(has_served=True)
            self._folder.write_plan(self.plan)
        if now - self._started_at > _STEADY_S:
            self._again.succeeded()
        if self._needs_reload:
            self._needs_reload = not process.send(self._folder, signal.SIGHUP)

    def _step_dead(self, has_ended: bool) -> None:
        now = asyncio.get_running_loop().time()
        if self._problem is not None:
            return
        last = self._folder.read_process()
        if has_ended and last is not None and last.deployment_id == self.plan.deployment_id:
            if not self.plan.has_served and not self._may_try_other_ports():
                reason = process.explain(self._folder, self.hidden)
                self._problem = Problem(Code.UNABLE_TO_START, reason)
                return
            if self.plan.has_served:
                delay_s = self._again.failed()
                self._start_at = now + delay_s
                logger.warning(
                    "a runtime ended",
                    extra={"project": self.plan.project_id, "restart_in_s": round(delay_s, 1)},
                )
        if now >= self._start_at:
            self._start(now)

    def _start(self, now: float) -> None:
        if not process.are_free(self.plan.ports):
            self.plan = self.plan.with_(ports=self._new_ports())
            self._folder.write_plan(self.plan)
        lock = self._folder.try_lock()
        if lock is None:
            return
        try:
            self._started_pid = process.start(
                self._folder,
                self.plan,
                lock,
                self._command(self._folder, self.plan),
                keeps_environment=self._keeps_environment,
            )
        finally:
            os.close(lock)
        self._started_at, self._needs_reload = now, False
        logger.info(
            "a runtime starts",
            extra={"project": self.plan.project_id, "deployment": self.plan.deployment_id},
        )

    def _stop(self, now: float) -> None:
        if self._stop_began is None:
            self._stop_began = now
            process.send(self._folder, signal.SIGTERM)
        elif now - self._stop_began > STOP_S:
            process.send(self._folder, signal.SIGKILL)

    def _reap(self) -> bool:
        """Return whether the process has ended that this service started."""
        if self._started_pid is None:
            return False
        if process.reap(self._started_pid) is None and self._folder.is_locked():
            return False
        self._started_pid = None
        return True

    def _may_try_other_ports(self) -> bool:
        """Return whether the ports were taken, in the moment between the look and the start."""
        if process.are_free(self.plan.ports) or self._port_tries >= _PORT_TRIES:
            return False
        self._port_tries += 1
        return True

    def _bound_log(self) -> None:
        try:
            if self._folder.log.stat().st_size > _LARGEST_LOG:
                # The runtime appends, so it goes on at the start.
                os.truncate(self._folder.log, 0)
        except FileNotFoundError:
            pass
