"""Chunks in a folder: what was taken in is there whole, and outlives a power cut. Blocks."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from caraway_plugins.stores import chunks
from caraway_plugins.stores.durable import Workshop, sync_folder

_WORKSHOP = ".unfinished"
_CHUNK = re.compile(r"[0-9]{8}-([0-9a-f]{64})\.arrow")
_MOST_STEPS = 10
_TRIES = 4


class DamagedError(ValueError):
    """The bytes that came are not those that the name of the chunk stands for."""


def folder_of(steps: Sequence[str]) -> Path | None:
    """Return the folder that the steps of a path name; None if they are no plain names."""
    if not 0 < len(steps) <= _MOST_STEPS or not all(map(chunks.is_key, steps)):
        return None
    return Path(*steps)


def checksum_of(name: str) -> str | None:
    """Return the checksum that the name of a chunk holds; None if it names no chunk."""
    found = _CHUNK.fullmatch(name)
    return found[1] if found else None


class Shelf:
    """The folder of one store.

    Raises:
        OSError: the folder cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workshop = Workshop(root / _WORKSHOP)
        self.orphans = self._workshop.open()
        """How many unfinished chunks a process that was killed had left."""

    @contextmanager
    def draft(self) -> Iterator["Draft"]:
        """Yield a new chunk without a name; what is not published by the end is removed."""
        with self._workshop.unfinished() as handle:
            yield Draft(handle)

    def publish(self, draft: "Draft", folder: Path, name: str) -> None:
        """Bring a chunk to disk and give it its name; from here on it is kept.

        Raises:
            DamagedError: its bytes have another checksum than the name.
            OSError: it cannot be written.
        """
        if draft.sha256 != checksum_of(name):
            raise DamagedError(f"the bytes of '{name}' arrived damaged; send them again")
        for attempt in range(1, _TRIES + 1):
            self._make(folder.parent)
            try:
                return self._workshop.publish(draft.handle, self._root / folder / name)
            except FileNotFoundError:
                # Somebody deleted the key in this very moment; the chunk comes after that.
                if attempt == _TRIES:
                    raise

    def open(self, folder: Path, name: str) -> BinaryIO | None:
        """Open a chunk to be read, also while it is deleted; None if there is none."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return (self._root / folder / name).open("rb")
        return None

    def delete(self, folder: Path) -> None:
        """Remove every chunk of a key at one instant; nothing happens if there is none."""
        self._workshop.discard(self._root / folder)

    def keys(self, prefix: Path | None) -> Sequence[str]:
        """Return the keys below a prefix that have chunks, sorted."""
        place = self._root / prefix if prefix else self._root
        with suppress(FileNotFoundError, NotADirectoryError):
            found = [path for path in place.iterdir() if chunks.is_key(path.name)]
            return sorted(path.name for path in found if _has_chunks(path))
        return []

    def try_out(self) -> None:
        """Write a little and bring it to disk; it does not stay.

        Raises:
            OSError: nothing can be written.
        """
        self._workshop.try_out()

    def room(self) -> tuple[int, int]:
        """Return the free and all bytes of the disk."""
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def _make(self, folder: Path) -> None:
        """Make the folders above a key, and their names durable."""
        if (self._root / folder).is_dir():
            return
        place = self._root
        for step in folder.parts:
            place = place / step
            with suppress(FileExistsError):
                place.mkdir()
            sync_folder(place.parent)


class Draft:
    """A chunk that is being received."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self._sum = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()

    def write(self, blocks: Iterable[bytes]) -> None:
        for block in blocks:
            self.handle.write(block)
            self._sum.update(block)


def _has_chunks(folder: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError):
        return any(checksum_of(path.name) for path in folder.iterdir())
    return False
