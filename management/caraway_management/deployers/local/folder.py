"""The folder of a project: its plan, the files of its runtime, and the lock of the process."""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from caraway_core.errors import CarawayError
from caraway_management.deployers.local import manifests
from caraway_management.deployers.protocol import Wanted

_LOG_BYTES = 4 * 1024 * 1024
"""Enough for the most lines that a plan shows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The runtime that should run in a folder. It is kept, so that it runs after a restart."""

    project_id: int
    deployment_id: int
    is_running: bool
    ports: tuple[int, int, int]
    """HTTP, Flight and metrics. They stay as long as the folder does."""
    executors: int = 0
    """0 for a runtime in one process; otherwise a cluster."""
    is_removed: bool = False
    has_served: bool = False
    """True if the runtime of this deployment has been ready."""
    created: int = 0
    """When the project was created; 0 if that is not known."""

    def with_(self, **changes: object) -> "Plan":
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Process:
    """A process, and the deployment that it was started for."""

    id: int
    deployment_id: int


class ProjectFolder:
    """Files of one project. Each is replaced at once, and only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest(self) -> Path:
        return self.path / "caraway.yaml"

    @property
    def limits(self) -> Path:
        return self.path / "limits.json"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def log(self) -> Path:
        return self.path / "runtime.log"

    @property
    def process_file(self) -> Path:
        return self.path / "process"

    def read_plan(self) -> Plan | None:
        """Return what should run; None if that was never written."""
        try:
            content = json.loads((self.path / "plan.json").read_text())
            content["ports"] = tuple(content["ports"])
            return Plan(**content)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as exc:
            raise CarawayError("the plan of a project's folder is damaged") from exc

    def write_plan(self, plan: Plan) -> None:
        self._write("plan.json", json.dumps(asdict(plan)))

    def write(self, wanted: Wanted, *, allows_files: bool) -> bool:
        """Write what a runtime reads; return whether its secrets have changed.

        Raises:
            RejectedError: the manifest cannot be used.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        manifest = manifests.effective(wanted, self.path, allows_files=allows_files)
        keys = {str(key.number): key.value for key in wanted.api_keys}
        self._fill("keys", keys)
        has_changed = self._fill("secrets", wanted.secrets)
        limits = {name: value for name, value in wanted.limits.items() if value is not None}
        self._write("limits.json", json.dumps(limits))
        self._write("caraway.yaml", manifest)
        return has_changed

    def try_lock(self) -> int | None:
        """Return the lock of the folder, to be given to a runtime; None if one has it.

        It is held as long as any process has it open, and so by what a runtime has started, too.
        """
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock

    def is_locked(self) -> bool:
        """Return whether a runtime, or a process that it has started, still runs."""
        if not self.path.is_dir():
            return False
        lock = self.try_lock()
        if lock is None:
            return True
        os.close(lock)
        return False

    def read_process(self) -> "Process | None":
        """Return the process that was started last; None until it has recorded itself."""
        try:
            pid, deployment_id = self.process_file.read_text().split()
            return Process(int(pid), int(deployment_id))
        except (FileNotFoundError, ValueError):
            return None

    def started_at(self) -> datetime | None:
        """Return when that process recorded itself; None until then."""
        try:
            return datetime.fromtimestamp(self.process_file.stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def last_lines(self, most: int) -> list[str]:
        """Return the last lines of the log of the runtime."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_BYTES))
                return log.read().decode(errors="replace").splitlines()[-most:]
        except FileNotFoundError:
            return []

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _fill(self, name: str, values: Mapping[str, str]) -> bool:
        """Have one file for each value; return whether something has changed."""
        folder = self.path / name
        folder.mkdir(exist_ok=True, mode=0o700)
        has_changed = False
        for file in folder.iterdir():
            if file.name not in values:
                file.unlink()
                has_changed = True
        for key, value in values.items():
            has_changed |= self._write(f"{name}/{key}", value)
        return has_changed

    def _write(self, name: str, text: str) -> bool:
        """Replace a file; return whether it has changed."""
        file = self.path / name
        content = text.encode(errors="surrogateescape")
        try:
            if file.read_bytes() == content:
                return False
        except FileNotFoundError:
            pass
        draft = self.path / f".{file.name}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
        return True
