"""The data directory of a cluster on one machine: its lock, plan and status files."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from caraway_cluster.plan import ClusterPlan
from caraway_core.errors import CarawayError


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The status of one process of the cluster."""

    name: str
    state: str
    pid: int | None
    address: str
    restarts: int
    log: str
    endpoints: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalClusterStatus:
    """The status of the cluster, as its supervisor last wrote it."""

    supervisor_pid: int
    executors: int
    processes: Sequence[ProcessStatus]

    @property
    def endpoints(self) -> dict[str, str]:
        return next((each.endpoints for each in self.processes if each.name == "scheduler"), {})


class ClusterFolder:
    """The files through which the supervisor and the user's commands communicate."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory for this supervisor.

        Raises:
            CarawayError: it is locked by another process, or cannot be written.
        """
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            raise CarawayError(
                f"cannot use the data directory '{self.path}': {exc.strerror}; choose another one "
                "with --data-dir DIR"
            ) from exc
        if not _try_lock(lock):
            os.close(lock)
            raise CarawayError(
                f"a cluster is already running in '{self.path}'; stop it with `caraway cluster "
                f"down --data-dir {self.path}`, or choose another directory with --data-dir DIR"
            )
        try:
            yield
        finally:
            self._status_file.unlink(missing_ok=True)
            os.close(lock)

    @property
    def is_locked(self) -> bool:
        """True if a supervisor holds the directory."""
        try:
            lock = os.open(self._lock_file, os.O_RDWR)
        except OSError:
            return False
        try:
            return not _try_lock(lock)
        finally:
            os.close(lock)

    def write_plan(self, plan: ClusterPlan) -> None:
        _replace(self.path / "cluster.json", plan.to_json())

    def read_plan(self) -> ClusterPlan:
        return ClusterPlan.from_json((self.path / "cluster.json").read_text())

    def write_status(self, status: LocalClusterStatus) -> None:
        _replace(self._status_file, json.dumps(asdict(status)))

    def status(self) -> LocalClusterStatus | None:
        """Return the status of the cluster; None if none is running or none was written yet."""
        if not self.is_locked:
            return None
        try:
            document: dict[str, Any] = json.loads(self._status_file.read_text())
        except FileNotFoundError:
            return None
        if "keeper_pid" in document:
            # Written by an older version, such as the base that `bench.paired` compares with.
            document["supervisor_pid"] = document.pop("keeper_pid")
        document["processes"] = [ProcessStatus(**each) for each in document["processes"]]
        return LocalClusterStatus(**document)

    def mark_ready(self, missing: str) -> None:
        """Note that the cluster serves, and the components that are not loaded."""
        _replace(self.path / "ready", missing)

    def missing(self) -> str | None:
        """Return the components that were not loaded when the cluster began to serve.

        Returns None if it does not serve yet.
        """
        try:
            return (self.path / "ready").read_text()
        except FileNotFoundError:
            return None

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    @property
    def _status_file(self) -> Path:
        return self.path / "status.json"


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _replace(file: Path, text: str) -> None:
    """Replace the file atomically, so that a reader sees the old text or the new text."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text)
    os.chmod(draft, 0o600)  # The URL of the state store may contain a password.
    draft.replace(file)
