"""Stores results in a local folder: one folder per key, one file per chunk."""

import asyncio
import copy
import logging
import os
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import ResultStoreError
from caraway_core.process import disks
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_plugins.stores import chunks
from caraway_plugins.stores.direct import past_cache
from caraway_plugins.stores.durable import UnfinishedFiles

logger = logging.getLogger(__name__)

_WORKSHOP = ".unfinished"


class FolderResultStore:
    """Keeps chunks as Arrow IPC streams in files that are named by their checksum.

    Two writers of one chunk therefore never collide, for example when a job is taken over from an
    owner that is still alive. Each reader gets the bytes of its own ChunkInfo.

    Raises:
        ResultStoreError: the folder is not writable.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._is_past_cache = False
        self._workshop = UnfinishedFiles(root / _WORKSHOP)
        try:
            orphans = self._workshop.open()
        except OSError as exc:
            raise ResultStoreError(
                f"result store {root}: {exc.strerror}; give user {os.geteuid()} permission to "
                "write to this folder, or set another folder"
            ) from exc
        if orphans:
            logger.info("orphaned results removed", extra={"count": orphans})

    def past_cache(self) -> "FolderResultStore":
        """Return the same store with writes that bypass the page cache, for data not read soon."""
        other = copy.copy(self)
        other._is_past_cache = True
        return other

    @classmethod
    def at(cls, place: ResultPlace) -> "FolderResultStore":
        """Open the store at a place."""
        return cls(Path(place.path))

    async def check(self) -> None:
        """Write a small file, to detect missing permissions or a full disk early.

        Raises:
            DiskFullError: the disk is full.
            ResultStoreError: the folder is not writable.
        """
        try:
            await asyncio.to_thread(self._workshop.try_out)
        except OSError as exc:
            title = f"result store {self._root} cannot be used; repair it or set another folder"
            raise disks.failure(title, exc) from exc

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        """Store one chunk; the chunk is durable when this returns.

        Raises:
            CarawayError: the key or the index is not valid in a file name.
            DiskFullError: there is no space for the chunk.
            ResultStoreError: the chunk cannot be stored. No part of it remains.
        """
        return await asyncio.to_thread(self._write, key, index, schema, batches, checksum)

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, after a check of all of its bytes.

        Raises:
            CarawayError: the key or the checksum is not valid in a file name.
            ResultStoreError: the chunk is missing or damaged.
        """
        groups = _Groups(self._read(key, chunk))
        try:
            while (group := await asyncio.to_thread(groups.read_next)) is not None:
                for batch in group:
                    yield batch
        finally:
            groups.leave()

    def path_of(self, key: str, chunk: ChunkInfo) -> Path:
        """Return the path of a chunk on this host, whether or not it exists.

        Raises:
            CarawayError: the key or the checksum is not valid in a file name.
        """
        name = chunks.file_name(chunk.index, chunk.checksum)
        return self._root / chunks.checked_key(key) / name

    async def delete(self, key: str) -> None:
        """Delete all chunks of the key atomically, if there are any."""
        folder = self._root / chunks.checked_key(key)
        try:
            await asyncio.to_thread(self._workshop.discard, folder)
        except OSError as exc:
            raise disks.failure(f"result '{key}' cannot be deleted", exc) from exc

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        try:
            return await asyncio.to_thread(self._keys)
        except OSError as exc:
            raise disks.failure("results cannot be listed", exc) from exc

    def _write(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str,
    ) -> ChunkInfo:
        folder = self._root / chunks.checked_key(key)
        with _failing("stored", key, index), self._workshop.unfinished() as handle:
            with past_cache(handle) if self._is_past_cache else nullcontext(handle) as target:
                chunk = chunks.write(target, index, schema, batches, checksum)
            self._workshop.publish(handle, folder / chunks.file_name(index, chunk.checksum))
            return chunk

    def _read(self, key: str, chunk: ChunkInfo) -> Generator[Sequence[pa.RecordBatch]]:
        path = self.path_of(key, chunk)
        with _failing("read", key, chunk.index):
            try:
                handle = path.open("rb")
            except FileNotFoundError as exc:
                raise chunks.gone(key, chunk.index) from exc
            with handle:
                yield from chunks.read(handle, key, chunk)

    def _keys(self) -> Sequence[str]:
        found = (path for path in self._root.iterdir() if chunks.is_key(path.name))
        return sorted(path.name for path in found if _has_chunks(path))


class _Groups:
    """The groups of a chunk. Its file is closed once its caller has left and no thread reads."""

    def __init__(self, groups: Generator[Sequence[pa.RecordBatch]]) -> None:
        self._groups = groups
        self._is_left = False

    def read_next(self) -> Sequence[pa.RecordBatch] | None:
        """Return the next group, or None after the last one."""
        try:
            return next(self._groups, None)
        finally:
            if self._is_left:
                self._close()

    def leave(self) -> None:
        """Close the file, or have the thread close it that still reads for a cancelled caller."""
        self._is_left = True
        self._close()

    def _close(self) -> None:
        # A generator that runs cannot be closed.
        with suppress(ValueError):
            self._groups.close()


def _has_chunks(folder: Path) -> bool:
    # The folder may be deleted concurrently, and a user may have put a file next to it.
    with suppress(FileNotFoundError, NotADirectoryError):
        return any(folder.iterdir())
    return False


@contextmanager
def _failing(what: str, key: str, index: int) -> Iterator[None]:
    """Convert exceptions to errors that name the chunk; a full disk has its own error."""
    title = f"result '{key}': chunk {index} cannot be {what}"
    try:
        with disks.failing(f"{title} on the disk of the result store"):
            yield
    except pa.ArrowException as exc:
        raise ResultStoreError(f"{title}: its rows are not valid Arrow data") from exc
