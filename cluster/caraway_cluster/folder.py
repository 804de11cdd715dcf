"""The data directory of a cluster on one machine: who keeps it, what is wanted, what is."""

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
    """One process of the cluster, as the keeper sees it."""

    name: str
    state: str
    pid: int | None
    address: str
    restarts: int
    log: str
    endpoints: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The cluster as its keeper saw it last."""

    keeper_pid: int
    executors: int
    processes: Sequence[ProcessStatus]

    @property
    def endpoints(self) -> dict[str, str]:
        return next((each.endpoints for each in self.processes if each.name == "scheduler"), {})


class ClusterFolder:
    """Files that the keeper and the commands of the user share."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the keeper of this directory.

        Raises:
            CarawayError: it has one, or cannot be written.
        """
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            raise CarawayError(
                f"cannot use the data directory '{self.path}': {exc.strerror}; choose another one "
                "with --data-dir DIR"
            ) from exc
        if not _locks(lock):
            os.close(lock)
            raise CarawayError(
                f"a cluster is up in '{self.path}' already; end it with `caraway cluster down "
                f"--data-dir {self.path}`, or choose another directory with --data-dir DIR"
            )
        try:
            yield
        finally:
            self._status.unlink(missing_ok=True)
            os.close(lock)

    @property
    def has_keeper(self) -> bool:
        try:
            lock = os.open(self._lock, os.O_RDWR)
        except OSError:
            return False
        try:
            return not _locks(lock)
        finally:
            os.close(lock)

    def want(self, plan: ClusterPlan) -> None:
        _write(self.path / "cluster.json", plan.to_json())

    def wanted(self) -> ClusterPlan:
        return ClusterPlan.from_json((self.path / "cluster.json").read_text())

    def tell(self, status: ClusterStatus) -> None:
        _write(self._status, json.dumps(asdict(status)))

    def status(self) -> ClusterStatus | None:
        """What runs; None if nothing does, or nothing has been told yet."""
        if not self.has_keeper:
            return None
        try:
            told: dict[str, Any] = json.loads(self._status.read_text())
        except FileNotFoundError:
            return None
        told["processes"] = [ProcessStatus(**each) for each in told["processes"]]
        return ClusterStatus(**told)

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def _status(self) -> Path:
        return self.path / "status.json"


def _locks(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: Path, text: str) -> None:
    """Replace the file as a whole: whoever reads it sees the old text or the new."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text)
    os.chmod(draft, 0o600)  # The URL of the state store may hold a password.
    draft.replace(file)
