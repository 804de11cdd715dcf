"""Memory-maps chunks that stay on disk, so that the system loads their pages on demand.

A chunk in a directory of this host is read in place. A chunk elsewhere is copied once to a
directory of the executor, and found again after a restart. The least recently used copies are
removed when there are too many.
"""

import asyncio
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

import pyarrow as pa

from caraway_core.errors import CarawayError, ResultStoreError
from caraway_core.process import disks
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_plugins.stores import checksums, chunks
from caraway_plugins.stores.durable import sync_folder

_SHARE_OF_DISK = 0.8


@runtime_checkable
class Local(Protocol):
    """A store whose chunks are files of this host."""

    def path_of(self, key: str, chunk: ChunkInfo) -> Path: ...


@runtime_checkable
class Remote(Protocol):
    """A store whose chunks can be copied byte by byte."""

    async def copy_chunk(self, key: str, chunk: ChunkInfo, target: Path) -> None: ...


class MappedChunks:
    """Memory-maps chunks; `folder` holds copies of chunks from remote stores.

    Copies may use `limit_bytes`, or by default most of the disk that is free at the start.
    """

    def __init__(self, folder: Path | None, limit_bytes: int | None = None) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._copies: OrderedDict[str, int] = OrderedDict()
        self._known: set[Path] = set()
        self._lock = Lock()
        self._is_open = False

    @property
    def can_copy(self) -> bool:
        """True if there is a directory for copies."""
        return self._folder is not None

    async def read(
        self, store: ResultStore, key: str, chunk: ChunkInfo
    ) -> Sequence[pa.RecordBatch] | None:
        """Return the batches of a chunk over its file, or None if there is no place for one.

        Raises:
            ResultStoreError: the chunk is missing or damaged, or cannot be copied.
        """
        if isinstance(store, Local):
            return await asyncio.to_thread(self._mapped, store.path_of(key, chunk), key, chunk)
        if self._folder is None or not isinstance(store, Remote):
            return None
        await asyncio.to_thread(self._open)
        path = self._folder / chunks.file_name(0, chunk.checksum)
        with self._lock:
            if chunk.checksum in self._copies:
                self._copies.move_to_end(chunk.checksum)
        try:
            return await asyncio.to_thread(self._mapped, path, key, chunk)
        except ResultStoreError:
            pass  # There is no copy yet, or it is damaged.
        await self._copy(store, path, key, chunk)
        return await asyncio.to_thread(self._mapped, path, key, chunk)

    def copy_of(self, chunk: ChunkInfo) -> Sequence[pa.RecordBatch] | None:
        """Return the rows of a copy in the executor's directory, if it exists and is intact."""
        if self._folder is None:
            return None
        self._open()
        path = self._folder / chunks.file_name(0, chunk.checksum)
        # Verify it again: the disk may have damaged it since.
        self._known.discard(path)
        try:
            return self._mapped(path, "", chunk)
        except CarawayError:
            return None

    def _mapped(self, path: Path, key: str, chunk: ChunkInfo) -> Sequence[pa.RecordBatch]:
        try:
            if path not in self._known:
                with path.open("rb") as file:
                    if not checksums.match(file, chunk.checksum):
                        raise chunks.damaged(key, chunk)
                self._known.add(path)
            return list(pa.ipc.open_stream(pa.memory_map(str(path))))
        except FileNotFoundError as exc:
            raise chunks.gone(key, chunk.index) from exc
        except OSError as exc:
            title = f"result '{key}': chunk {chunk.index} cannot be read from its disk"
            raise disks.failure(title, exc) from exc
        except pa.ArrowException as exc:
            raise ResultStoreError(
                f"result '{key}': chunk {chunk.index} cannot be read: it contains no rows"
            ) from exc

    async def _copy(self, store: Remote, path: Path, key: str, chunk: ChunkInfo) -> None:
        """Copy a chunk, and give the copy its name after it was verified."""
        try:
            draft = await asyncio.to_thread(self._draft, chunk)
            try:
                await store.copy_chunk(key, chunk, draft)
                await asyncio.to_thread(self._keep, draft, path, key, chunk)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as exc:
            title = f"the executor cannot keep a copy of chunk {chunk.index} on its disk"
            raise disks.failure(title, exc) from exc

    def _draft(self, chunk: ChunkInfo) -> Path:
        self._make_room(chunk.size_bytes)
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".")
        os.close(handle)
        return Path(draft)

    def _keep(self, draft: Path, path: Path, key: str, chunk: ChunkInfo) -> None:
        with draft.open("rb") as file:
            if not checksums.match(file, chunk.checksum):
                raise chunks.damaged(key, chunk)
            os.fsync(file.fileno())
        os.replace(draft, path)
        sync_folder(path.parent)
        self._known.add(path)
        with self._lock:
            self._copies[chunk.checksum] = chunk.size_bytes

    def _make_room(self, size_bytes: int) -> None:
        """Remove copies to make room; existing maps keep their pages."""
        with self._lock:
            limit = self._limit_bytes or 0
            while self._copies and sum(self._copies.values()) + size_bytes > limit:
                checksum, _ = self._copies.popitem(last=False)
                assert self._folder is not None
                path = self._folder / chunks.file_name(0, checksum)
                self._known.discard(path)
                path.unlink(missing_ok=True)

    def _open(self) -> None:
        """Find the copies of earlier processes."""
        with self._lock:
            if self._is_open or self._folder is None:
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            paths = sorted(self._folder.glob("*.arrow"), key=lambda path: path.stat().st_mtime)
            for path in paths:
                self._copies[path.stem.partition("-")[2]] = path.stat().st_size
            for draft in self._folder.glob(".*"):
                draft.unlink(missing_ok=True)
            if self._limit_bytes is None:
                free = shutil.disk_usage(self._folder).free
                self._limit_bytes = int(free * _SHARE_OF_DISK) + sum(self._copies.values())
            self._is_open = True
