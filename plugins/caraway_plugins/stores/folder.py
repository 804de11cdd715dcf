"""Answers as files in a local folder: one folder a key, one file a chunk."""

import asyncio
import io
import logging
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import CarawayError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import ResultPlace
from caraway_plugins.stores.durable import Workshop, publish
from caraway_plugins.stores.hashing import HashingWriter, digest

logger = logging.getLogger(__name__)

# No separator and no leading dot: such a name cannot leave the folder, nor hit the workshop.
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_WORKSHOP = ".unfinished"


class FolderResultStore:
    """Keeps chunks as Arrow IPC streams in files that are named by their checksum.

    The name keeps two writers of one chunk apart, as when a job is taken over from an owner that
    still lives: each reader gets the bytes that its own ChunkInfo stands for.

    Raises:
        ResultStoreError: the folder cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workshop = Workshop(root / _WORKSHOP)
        try:
            orphans = self._workshop.open()
        except OSError as exc:
            raise ResultStoreError(
                f"result store {root}: {exc.strerror}; give user {os.geteuid()} the right to "
                "write to this folder, or name another one"
            ) from exc
        if orphans:
            logger.info("orphaned results removed", extra={"count": orphans})

    @classmethod
    def at(cls, place: ResultPlace) -> "FolderResultStore":
        return cls(Path(place.path))

    async def write_chunk(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        """Store one chunk; what this returned for is durable.

        Raises:
            CarawayError: the key or the index cannot name a file.
            ResultStoreError: the chunk cannot be stored; nothing of it stays behind.
        """
        return await asyncio.to_thread(self._write, key, index, schema, batches)

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, after all of its bytes were checked.

        Arrow does not bear damaged streams, so none is shown to it: the file is read twice, the
        second time from the page cache.

        Raises:
            CarawayError: the key or the checksum cannot name a file.
            ResultStoreError: the chunk is missing, or its bytes are not those that were written.
        """
        path = self._path(key, chunk.index, chunk.sha256)
        with _failing("read", key, chunk.index):
            handle = await asyncio.to_thread(path.open, "rb")
            with handle:
                await asyncio.to_thread(_check, handle, key, chunk)
                reader = await asyncio.to_thread(pa.ipc.open_stream, handle)
                while (batch := await asyncio.to_thread(next, reader, None)) is not None:
                    yield batch

    async def delete(self, key: str) -> None:
        """Remove every chunk of the key at one instant; nothing happens if there is none."""
        folder = self._folder(key)
        try:
            await asyncio.to_thread(self._workshop.discard, folder)
        except OSError as exc:
            raise ResultStoreError(f"result '{key}' cannot be deleted: {exc}") from exc

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        try:
            return await asyncio.to_thread(self._keys)
        except OSError as exc:
            raise ResultStoreError(f"results in {self._root} cannot be listed: {exc}") from exc

    def _write(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        folder = self._folder(key)
        with _failing("stored", key, index), self._workshop.unfinished() as handle:
            sink = HashingWriter(handle)
            with pa.ipc.new_stream(sink, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            rows = sum(batch.num_rows for batch in batches)
            chunk = ChunkInfo(index, rows, sink.size_bytes, sink.sha256)
            publish(handle, folder / _file_name(index, chunk.sha256))
            return chunk

    def _keys(self) -> Sequence[str]:
        found = (path for path in self._root.iterdir() if _KEY.fullmatch(path.name))
        return sorted(path.name for path in found if _has_chunks(path))

    def _folder(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise CarawayError(
                f"result key {key!r} is not allowed: use up to 200 letters, digits, '_', '-' "
                "and '.', and no '.' at the start"
            )
        return self._root / key

    def _path(self, key: str, index: int, sha256: str) -> Path:
        return self._folder(key) / _file_name(index, sha256)


def _file_name(index: int, sha256: str) -> str:
    if index < 0 or not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise CarawayError(f"chunk {index} with checksum {sha256!r} cannot be a stored chunk")
    return f"{index:08d}-{sha256}.arrow"


def _has_chunks(folder: Path) -> bool:
    # The folder may be deleted meanwhile, and a user may have put a file beside it.
    with suppress(FileNotFoundError, NotADirectoryError):
        return any(folder.iterdir())
    return False


def _check(handle: io.BufferedReader, key: str, chunk: ChunkInfo) -> None:
    if digest(handle) != chunk.sha256:
        raise ResultStoreError(
            f"result '{key}': chunk {chunk.index} is damaged on disk; run the query again, "
            "and check the disk"
        )
    handle.seek(0)


@contextmanager
def _failing(what: str, key: str, index: int) -> Iterator[None]:
    """Say what failed; the operating system's words tell a full disk from a missing chunk."""
    try:
        yield
    except FileNotFoundError as exc:
        raise ResultStoreError(
            f"result '{key}': chunk {index} cannot be {what}, it is gone: it expired or was "
            "deleted; run the query again"
        ) from exc
    except (OSError, pa.ArrowException) as exc:
        raise ResultStoreError(
            f"result '{key}': chunk {index} cannot be {what}: {exc}; "
            "check the space and the rights on the disk of the result store"
        ) from exc
