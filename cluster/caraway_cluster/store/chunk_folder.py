"""Stores chunks in a directory, atomically and durably. All calls block."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from caraway_plugins.stores import checksums, chunks
from caraway_plugins.stores.checksums import ChecksumWriter
from caraway_plugins.stores.durable import UnfinishedFiles, sync_folder

_WORKSHOP = ".unfinished"
_CHUNK = re.compile(r"[0-9]{8}-([0-9a-f]{64})\.arrow")
_MAX_STEPS = 10
_TRIES = 4


class ChecksumMismatchError(ValueError):
    """The bytes of a chunk do not match the checksum in its name."""


def folder_of(steps: Sequence[str]) -> Path | None:
    """Return the folder with these path components; None if one is not a valid name."""
    if not 0 < len(steps) <= _MAX_STEPS or not all(map(chunks.is_key, steps)):
        return None
    return Path(*steps)


def checksum_of(name: str) -> str | None:
    """Return the checksum in the name of a chunk; None if it is not the name of a chunk."""
    match = _CHUNK.fullmatch(name)
    return match[1] if match else None


class ChunkFolder:
    """The directory of a chunk store.

    Raises:
        OSError: the directory cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workshop = UnfinishedFiles(root / _WORKSHOP)
        self.orphans = self._workshop.open()
        """The number of unfinished chunks that an earlier process left and that were removed."""

    @contextmanager
    def new_draft(self) -> Iterator["ChunkDraft"]:
        """Yield a new, unnamed chunk. It is removed at the end unless it was published."""
        with self._workshop.unfinished() as handle:
            yield ChunkDraft(handle)

    def publish(self, draft: "ChunkDraft", folder: Path, name: str) -> None:
        """Sync a chunk to disk and give it its name.

        Raises:
            ChecksumMismatchError: the bytes do not match the checksum in the name.
            OSError: the chunk cannot be written.
        """
        if not draft.has_checksum(checksum_of(name) or ""):
            raise ChecksumMismatchError(
                f"the checksum of '{name}' does not match; send the chunk again"
            )
        for attempt in range(1, _TRIES + 1):
            self._make_folder(folder.parent)
            try:
                return self._workshop.publish(draft.handle, self._root / folder / name)
            except FileNotFoundError:
                # Another request deleted the key concurrently: this chunk belongs to a new one.
                if attempt == _TRIES:
                    raise

    def open_chunk(self, folder: Path, name: str) -> BinaryIO | None:
        """Open a chunk; None if it does not exist. It stays readable if it is deleted."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return (self._root / folder / name).open("rb")
        return None

    def delete_key(self, folder: Path) -> None:
        """Delete all chunks of a key atomically, if there are any."""
        self._workshop.discard(self._root / folder)

    def list_keys(self, prefix: Path | None) -> Sequence[str]:
        """Return the keys below a prefix that have chunks, sorted."""
        place = self._root / prefix if prefix else self._root
        with suppress(FileNotFoundError, NotADirectoryError):
            paths = [path for path in place.iterdir() if chunks.is_key(path.name)]
            return sorted(path.name for path in paths if _has_chunks(path))
        return []

    def check_writable(self) -> None:
        """Write and remove a small file.

        Raises:
            OSError: the file cannot be written.
        """
        self._workshop.try_out()

    def disk_space(self) -> tuple[int, int]:
        """Return the free and the total bytes of the disk."""
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def _make_folder(self, folder: Path) -> None:
        """Create the folders above a key and sync their names to disk."""
        if (self._root / folder).is_dir():
            return
        place = self._root
        for step in folder.parts:
            place = place / step
            with suppress(FileExistsError):
                place.mkdir()
            sync_folder(place.parent)


class ChunkDraft:
    """A chunk while it is received."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self._writer = ChecksumWriter(handle)

    def has_checksum(self, checksum: str) -> bool:
        """Return whether the bytes so far have the checksum."""
        if self._writer.checksum == checksum:
            return True
        # It may be one of another release.
        self.handle.flush()
        with open(self.handle.name, "rb") as file:
            return checksums.match(file, checksum)

    def write(self, blocks: Iterable[bytes]) -> None:
        for block in blocks:
            self._writer.write(block)


def _has_chunks(folder: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError):
        return any(checksum_of(path.name) for path in folder.iterdir())
    return False
