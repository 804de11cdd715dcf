"""The directory of one process: caches, spilled data, its node id; nobody else may use it."""

import fcntl
import os
import uuid
from pathlib import Path
from typing import Self

from caraway_core.errors import CarawayError
from caraway_core.ids import NodeId


class DataDirectory:
    """Held by a lock as long as the process lives."""

    def __init__(self, path: Path) -> None:
        # What is kept here is read by its path in other processes, too.
        self.path = path.absolute()
        self._lock = -1

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def spill(self) -> Path:
        return self.path / "spill"

    @property
    def chunks(self) -> Path:
        """Copies of stored chunks that lie elsewhere."""
        return self.path / "chunks"

    @property
    def node_id(self) -> NodeId:
        """An id that stays the same over restarts."""
        file, draft = self.path / "node-id", self.path / "node-id.draft"
        try:
            # An empty one was left by a process that met a full disk.
            if not file.exists() or not file.read_text().strip():
                draft.write_text(str(uuid.uuid4()))
                draft.rename(file)
            return NodeId(file.read_text().strip())
        except OSError as exc:
            raise CarawayError(
                f"cannot write to the data directory '{self.path}': {exc.strerror}; free space "
                "there, or choose another one with --data-dir DIR"
            ) from exc

    def __enter__(self) -> Self:
        try:
            for folder in (self.path, self.cache, self.spill):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            raise CarawayError(
                f"cannot use the data directory '{self.path}': {exc.strerror}; choose one that "
                "can be written to with --data-dir DIR"
            ) from exc
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            os.close(self._lock)
            raise CarawayError(
                f"the data directory '{self.path}' is in use by another process; stop that one, "
                "or choose another directory with --data-dir DIR"
            ) from exc
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._lock)
