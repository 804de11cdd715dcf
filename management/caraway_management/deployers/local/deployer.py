"""The deployer of a single machine."""

import asyncio
import contextlib
import fcntl
import importlib.util
import logging
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.deployers import protocol
from caraway_management.deployers.local import process
from caraway_management.deployers.local.folder import Plan, ProjectFolder
from caraway_management.deployers.local.runtime import Command, LocalRuntime
from caraway_management.deployers.protocol import Instance, RejectedError, Wanted
from caraway_management.domain.deployments import Observed, Phase

logger = logging.getLogger(__name__)
_NAME = "runtime-0"
_LOCK_DELAYS = Delays(0.05, 0.5)
_LOCK_TRIES = 8
_CLUSTER = "cluster"
_MOST_EXECUTORS = 16


class LocalDeployer:
    """Runs each project as a process, which goes on while the service is away.

    Only one service uses a folder; `opened` takes its lock.
    """

    def __init__(
        self,
        folder: Path,
        *,
        allows_files: bool = False,
        every_s: float = 0.5,
        command: Command = process.command,
    ) -> None:
        """Look at every process each `every_s` seconds."""
        self._folder = folder.absolute()
        self._allows_files = allows_files
        self._every_s = every_s
        self._command = command
        self._runtimes: dict[int, LocalRuntime] = {}
        self._locks: dict[int, asyncio.Lock] = {}
        self.id = ""
        """A name of the folder that no other one has. It is kept in the folder."""

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["LocalDeployer"]:
        """Take over the processes of the folder until the block ends. They outlive it.

        Raises:
            CarawayError: another service has the folder, or it cannot be used.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            raise CarawayError(
                f"cannot use the data directory '{self._folder.parent}': {exc.strerror}"
            ) from exc
        try:
            await self._take_lock(lock)
            self.id = _identity(lock)
            for id_ in self._ids():
                self._find(id_)
            yield self
        finally:
            os.close(lock)

    async def _take_lock(self, lock: int) -> None:
        """Take the lock of the folder. A process that a service has just forked holds it, too."""
        again = Backoff(_LOCK_DELAYS)
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(again.failed())
            else:
                return
        raise CarawayError(
            f"another service runs projects in '{self._folder.parent}'; stop it, or choose another "
            "directory with --data-dir DIR"
        )

    async def apply(self, wanted: Wanted) -> None:
        """Write what should run; the process follows.

        Raises:
            RejectedError: the manifest cannot be used here.
            UnavailableError: what the project was before is still being removed.
        """
        id_ = wanted.project_id
        executors = _executors(wanted)
        async with self._lock(id_):
            runtime = self._find(id_)
            if runtime is not None and runtime.plan.is_removed:
                raise UnavailableError("the project is still being removed", 1)
            if runtime is not None and not _is_of(runtime, wanted.created):
                raise protocol.taken()
            folder = self._folder_of(id_)
            if wanted.is_paused and runtime is None:
                return
            has_new_secrets = await asyncio.to_thread(
                folder.write, wanted, allows_files=self._allows_files
            )
            before = runtime.plan if runtime else None
            is_same = before is not None and before.deployment_id == wanted.deployment_id
            plan = Plan(
                id_, wanted.deployment_id, not wanted.is_paused,
                before.ports if before else self._new_ports(), executors,
                has_served=before is not None and is_same and before.has_served,
                created=wanted.created,
            )  # fmt: skip
            await asyncio.to_thread(folder.write_plan, plan)
            if runtime is None:
                runtime = self._add(plan)
            hidden = {f"secret {name}": value for name, value in wanted.secrets.items()}
            runtime.hidden = hidden | {f"key {key.number}": key.value for key in wanted.api_keys}
            has_resumed = before is not None and not before.is_running
            runtime.set_plan(plan, restarts=has_resumed)
            if is_same and has_new_secrets:
                runtime.reload()

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        """Return what the last look at the process has seen."""
        runtime = self._find_of(project_id, created)
        return Observed(Phase.ABSENT) if runtime is None else runtime.observe()

    async def remove(self, project_id: int, created: int | None = None) -> None:
        """End the process, and then delete its folder."""
        async with self._lock(project_id):
            runtime = self._find_of(project_id, created)
            if runtime is not None and not runtime.plan.is_removed:
                plan = runtime.plan.with_(is_removed=True, is_running=False)
                await asyncio.to_thread(self._folder_of(project_id).write_plan, plan)
                runtime.set_plan(plan, restarts=False)

    async def project_ids(self) -> set[int]:
        """Return the projects that have a folder which is not being removed."""
        return {id_ for id_, each in self._runtimes.items() if not each.plan.is_removed}

    async def instances(self, project_id: int, created: int | None = None) -> Sequence[Instance]:
        """Return the process, if there should be one."""
        phase = (await self.observe(project_id, created)).phase
        if phase is Phase.ABSENT:
            return []
        return [Instance(_NAME, str(phase), self._folder_of(project_id).started_at())]

    async def logs(
        self, project_id: int, instance: str, tail: int, created: int | None = None
    ) -> Sequence[str] | None:
        """Return the last lines of the process."""
        if instance != _NAME or self._find_of(project_id, created) is None:
            return None
        return await asyncio.to_thread(self._folder_of(project_id).last_lines, tail)

    async def run(self) -> None:
        """Bring every process to its plan, again and again, until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(self._every_s)

    @property
    def is_watching(self) -> bool:
        """False: processes are only looked at when a status is requested."""
        return False

    async def changed(self) -> set[int]:
        """Wait for ever."""
        return await asyncio.Future()

    async def step(self) -> None:
        """Look at every process once, and do the next step."""
        await asyncio.gather(*(self._step(id_) for id_ in list(self._runtimes)))

    async def _step(self, id_: int) -> None:
        async with self._lock(id_):
            runtime = self._runtimes.get(id_)
            if runtime is None:
                return
            try:
                await runtime.step()
            # The others go on; this one is tried again.
            except Exception:
                logger.exception("a runtime cannot be looked after", extra={"project": id_})
            if runtime.is_gone:
                del self._runtimes[id_]

    def _find(self, id_: int) -> LocalRuntime | None:
        """Return the runtime of a project, also one that an earlier service has left."""
        runtime = self._runtimes.get(id_)
        if runtime is None and (plan := self._folder_of(id_).read_plan()) is not None:
            runtime = self._add(plan)
        return runtime

    def _find_of(self, id_: int, created: int | None) -> LocalRuntime | None:
        """Return the runtime of the project with the mark."""
        runtime = self._find(id_)
        return runtime if runtime is not None and _is_of(runtime, created) else None

    def _add(self, plan: Plan) -> LocalRuntime:
        runtime = LocalRuntime(
            self._folder_of(plan.project_id), plan, self._new_ports, self._command,
            keeps_environment=self._allows_files,
        )  # fmt: skip
        self._runtimes[plan.project_id] = runtime
        return runtime

    def _new_ports(self) -> tuple[int, int, int]:
        taken = {port for each in self._runtimes.values() for port in each.plan.ports}
        http, flight, metrics = process.free_ports(frozenset(taken))
        return http, flight, metrics

    def _ids(self) -> list[int]:
        names = (each.name for each in self._folder.iterdir() if each.is_dir())
        return sorted(int(name) for name in names if name.isdecimal())

    def _folder_of(self, id_: int) -> ProjectFolder:
        return ProjectFolder(self._folder / str(id_))

    def _lock(self, id_: int) -> asyncio.Lock:
        return self._locks.setdefault(id_, asyncio.Lock())


def _is_of(runtime: LocalRuntime, created: int | None) -> bool:
    """Return whether a runtime is of the project with the mark, and not of another of its id."""
    return created is None or runtime.plan.created in (0, created)


def _identity(lock: int) -> str:
    """Return the name in the file of the lock, which the first service writes."""
    if not (found := os.pread(lock, 64, 0).decode(errors="replace")):
        found = secrets.token_hex(16)
        os.pwrite(lock, found.encode(), 0)
        os.fsync(lock)
    return found


def _executors(wanted: Wanted) -> int:
    """Return the executors of a project that is a cluster; 0 for one process.

    Raises:
        RejectedError: it is a cluster, and this installation cannot run one.
    """
    if wanted.tags.get("kind") != _CLUSTER:
        return 0
    if importlib.util.find_spec("ray") is None:
        raise RejectedError(
            "a project with the tag kind=cluster needs the extra 'cluster' of the installation"
        )
    number = (wanted.config.get("executor") or {}).get("replicas", 1)
    return max(1, min(int(number), _MOST_EXECUTORS))
