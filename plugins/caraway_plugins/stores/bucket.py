"""Stores results in S3, Google Cloud Storage or Azure: one prefix per key, one object per chunk."""

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import obstore
import pyarrow as pa

from caraway_core.errors import (
    CarawayError,
    DiskFullError,
    ExecutionError,
    ResultStoreAwayError,
    ResultStoreError,
)
from caraway_core.process import disks
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins import object_stores
from caraway_plugins.stores import chunks

if TYPE_CHECKING:  # obstore's types exist for the type checker only
    from obstore import GetResult

_TIMEOUT_S = 30.0
_PART_BYTES = 8 * chunks.MIB
_MULTIPART_BYTES = 32 * chunks.MIB
_DELETE_ROUNDS = 3


class BucketResultStore:
    """Keeps chunks as Arrow IPC streams in objects that are named by their checksum.

    Writers of the same chunk therefore never overwrite each other's bytes, and no write needs a
    condition. A request has at most three attempts, and a timeout.

    Raises:
        ResultStoreError: the options of the store are invalid.
    """

    def __init__(self, store: StoreSpec, prefix: str, timeout_s: float = _TIMEOUT_S) -> None:
        self._spec = store
        self._prefix = prefix.strip("/")
        try:
            self._client = object_stores.connect(store, timeout_s)
        except ValueError as exc:
            raise ResultStoreError(f"result store: {exc}") from exc

    @classmethod
    def at(cls, place: ResultPlace) -> "BucketResultStore":
        """Open the store at a place; nothing is sent yet.

        Raises:
            ResultStoreError: the place is not in a bucket, or its options are invalid.
        """
        if place.store is None:
            raise ResultStoreError(f"result store '{place.path}' has no bucket")
        return cls(place.store, place.path)

    async def check(self) -> None:
        """List the store once, to detect wrong credentials or a missing bucket early.

        Raises:
            ResultStoreError: the store does not respond, or denies access.
        """
        with self._failing("result store cannot be used", self._prefix):
            await anext(aiter(obstore.list(self._client, self._prefix or None)), None)

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
            CarawayError: the key or the index is not valid in an object name.
            ResultStoreError: the chunk cannot be stored.
        """
        path = self._path(chunks.checked_key(key))
        title = _title(key, index, "stored")
        content = io.BytesIO()
        with self._failing(title, path):
            chunk = await asyncio.to_thread(chunks.write, content, index, schema, batches, checksum)
            await obstore.put_async(
                self._client,
                f"{path}/{chunks.file_name(index, chunk.checksum)}",
                content.getbuffer(),
                use_multipart=chunk.size_bytes > _MULTIPART_BYTES,
                chunk_size=_PART_BYTES,
                max_concurrency=4,
            )
        return chunk

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, after a check of all of its bytes.

        Raises:
            CarawayError: the key or the checksum is not valid in an object name.
            ResultStoreError: the chunk is missing or damaged.
        """
        path, title = self._chunk(key, chunk), _title(key, chunk.index, "read")
        with self._failing(title, path):
            answer = await self._found(path, key, chunk)
            if chunk.size_bytes <= chunks.MOST_IN_MEMORY:
                content = pa.py_buffer(await answer.bytes_async())
                groups = iter([await asyncio.to_thread(chunks.unpack, content, key, chunk)])
            else:
                groups = _read(await _spooled(answer, title), key, chunk)
        # As in the folder store, the file is closed with its last reference.
        while (group := await asyncio.to_thread(next, groups, None)) is not None:
            for batch in group:
                yield batch

    async def copy_chunk(self, key: str, chunk: ChunkInfo, target: Path) -> None:
        """Write the bytes of a chunk to a file; the caller must verify them.

        Raises:
            CarawayError: the key or the checksum is not valid in an object name.
            ResultStoreError: the chunk is missing, has the wrong size, or cannot be written.
        """
        path, title = self._chunk(key, chunk), _title(key, chunk.index, "read")
        with self._failing(title, path):
            answer = await self._found(path, key, chunk)
            with _writing(title):
                with await asyncio.to_thread(target.open, "wb") as file:
                    await _write(answer, file)

    async def delete(self, key: str) -> None:
        """Delete all chunks of the key, if there are any."""
        path = self._path(chunks.checked_key(key))
        with self._failing(f"result '{key}' cannot be deleted", path):
            # Another process may delete the same objects, which is an error in some stores.
            for _ in range(_DELETE_ROUNDS):
                object_metas = await obstore.list(self._client, path).collect_async()
                if not object_metas:
                    return
                try:
                    await obstore.delete_async(
                        self._client, [each["path"] for each in object_metas]
                    )
                except Exception as exc:
                    if not object_stores.is_missing_object(exc):
                        raise
            raise ResultStoreError(
                f"result '{key}' cannot be deleted: another process writes to it"
            )

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        with self._failing("results cannot be listed", self._prefix):
            list_result = await obstore.list_with_delimiter_async(
                self._client, self._prefix or None
            )
        names = (path.rpartition("/")[2] for path in list_result["common_prefixes"])
        return sorted(filter(chunks.is_key, names))

    async def _found(self, path: str, key: str, chunk: ChunkInfo) -> "GetResult":
        try:
            answer = await obstore.get_async(self._client, path)
        except Exception as exc:
            if object_stores.is_missing_object(exc):
                raise chunks.gone(key, chunk.index) from exc
            raise
        if answer.meta["size"] != chunk.size_bytes:
            raise chunks.damaged(key, chunk)
        return answer

    def _chunk(self, key: str, chunk: ChunkInfo) -> str:
        name = chunks.file_name(chunk.index, chunk.checksum)
        return f"{self._path(chunks.checked_key(key))}/{name}"

    def _path(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    @contextmanager
    def _failing(self, what: str, path: str) -> Iterator[None]:
        """Convert exceptions to errors that name operation and path, without signed URLs."""
        try:
            yield
        except CarawayError:
            raise
        except pa.ArrowException as exc:
            raise ResultStoreError(f"{what}: its rows are not valid Arrow data") from exc
        except Exception as exc:
            raise _worded(what, object_stores.title(self._spec, path), exc) from exc


def _worded(what: str, where: str, exc: Exception) -> ExecutionError:
    if object_stores.is_full(exc):
        return DiskFullError(f"{what}: '{where}' is full; free or add space there")
    trouble = object_stores.trouble(where, exc)
    kind = ResultStoreAwayError if trouble.type == "unavailable" else ResultStoreError
    return kind(f"{what}: {trouble.message}")


def _title(key: str, index: int, what: str) -> str:
    return f"result '{key}': chunk {index} cannot be {what}"


async def _write(answer: "GetResult", file: BinaryIO) -> None:
    async for block in answer.stream():
        await asyncio.to_thread(file.write, block)


@contextmanager
def _writing(title: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno is None:
            raise  # An error of the store; errors of this host have an errno.
        raise disks.failure(f"{title}: the disk of this process cannot hold it", exc) from exc


async def _spooled(answer: "GetResult", title: str) -> BinaryIO:
    """Download a large object to an unnamed file, so that it is verified before it is read."""
    file = tempfile.TemporaryFile()
    try:
        with _writing(title):
            await _write(answer, file)
            file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read(file: BinaryIO, key: str, chunk: ChunkInfo) -> Iterator[Sequence[pa.RecordBatch]]:
    with file:
        yield from chunks.read(file, key, chunk)
