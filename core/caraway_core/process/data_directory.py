"""The data directory of one process: caches, spilled data and the node id."""

import fcntl
import os
import uuid
from pathlib import Path
from typing import Self

from caraway_core.errors import CarawayError
from caraway_core.ids import NodeId


class DataDirectory:
    """A data directory, locked for this process until it exits."""

    def __init__(self, path: Path) -> None:
        # Other processes read these files by their path, so it must be absolute.
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
        """Local copies of stored chunks."""
        return self.path / "chunks"

    @property
    def node_id(self) -> NodeId:
        """A node id that stays the same across restarts."""
        file, draft = self.path / "node-id", self.path / "node-id.draft"
        try:
            # A process that hit a full disk may have left an empty file.
            if not (known := _kept(file)):
                draft.write_text(str(uuid.uuid4()))
                draft.rename(file)
                known = _kept(file)
            return NodeId(known)
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


def _kept(file: Path) -> str:
    """Return the node id in a file; a file that is none, or has no text, has an empty one."""
    try:
        return file.read_text().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
