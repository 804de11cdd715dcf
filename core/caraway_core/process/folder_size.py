"""Measures how much of a disk a folder uses, in the background."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

EVERY_S = 60.0
_BLOCK_BYTES = 512
_ENTRIES_AT_ONCE = 5_000
_MOST_OF_TIME = 0.02


class FolderSize:
    """The bytes that the files of a folder use. Folders of many files are measured less often."""

    def __init__(self, path: Path, every_s: float = EVERY_S) -> None:
        self._path = path
        self._every_s = every_s
        self.last: int | None = None
        """The bytes when they were measured last; None until then."""

    async def run(self) -> None:
        """Measure again and again until cancelled."""
        while True:
            began = time.monotonic()
            self.last = await self.measure()
            took_s = time.monotonic() - began
            await asyncio.sleep(max(self._every_s, took_s / _MOST_OF_TIME))

    async def measure(self) -> int:
        """Return the bytes now. Threads read the folder, a part at a time."""
        waiting, found = [str(self._path)], 0
        while waiting:
            found += await asyncio.to_thread(_measure_part, waiting)
        return found


def _measure_part(waiting: list[str]) -> int:
    """Measure some of the folders; those that wait are changed in place."""
    found = entries = 0
    while waiting and entries < _ENTRIES_AT_ONCE:
        # Files come and go, and some may be of others.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as inside:
            for entry in inside:
                entries += 1
                with contextlib.suppress(OSError):
                    # Not their lengths: files may have holes.
                    found += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return found
