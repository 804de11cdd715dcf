"""Keeps the verdicts of users on answers of models, in a file of bounded size."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from caraway_core.process import disks

_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class VerdictFile:
    """A file of JSON lines. When it is full it becomes the one before, whose lines are dropped."""

    path: Path
    most_bytes: int = _MOST_BYTES
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def before(self) -> Path:
        """The file with the lines before those of this one."""
        return self.path.with_suffix(f".before{self.path.suffix}")

    def add(self, verdict: Mapping[str, object]) -> None:
        """Write a line; blocks.

        Raises:
            DiskFullError, ResultStoreAwayError: the disk is full, or fails.
        """
        line = json.dumps(verdict).encode() + b"\n"
        with self._lock, disks.failing("the verdict was not kept"):
            if self.path.exists() and self.path.stat().st_size + len(line) > self.most_bytes:
                self.path.replace(self.before)
            with self.path.open("ab") as stream:
                stream.write(line)
