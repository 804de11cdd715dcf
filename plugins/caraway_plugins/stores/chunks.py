"""What result stores agree on: how chunks are named, and that only whole ones are shown."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import arro3.io
import pyarrow as pa

from caraway_core.errors import CarawayError, DamagedChunkError
from caraway_core.protocols.results import ChunkInfo
from caraway_plugins.stores.hashing import HashingWriter, digest

MIB = 1024 * 1024
MOST_IN_MEMORY = 64 * MIB
"""Larger chunks, which only very long rows make, are read a few batches at a time."""
GROUP_BYTES = 4 * MIB

# No separator and no leading dot: such a name cannot leave its folder, nor hit the workshop.
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_key(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def checked_key(key: str) -> str:
    """Return the key.

    Raises:
        CarawayError: it is not a plain name.
    """
    if not is_key(key):
        raise CarawayError(
            f"result key {key!r} is not allowed: use up to 200 letters, digits, '_', '-' "
            "and '.', and no '.' at the start"
        )
    return key


def file_name(index: int, sha256: str) -> str:
    """Return the name of a chunk; it holds the checksum, so that two writers do not meet.

    Raises:
        CarawayError: no stored chunk has such an index or checksum.
    """
    if index < 0 or not _SHA256.fullmatch(sha256):
        raise CarawayError(f"chunk {index} with checksum {sha256!r} cannot be a stored chunk")
    return f"{index:08d}-{sha256}.arrow"


def write(
    target: BinaryIO, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
) -> ChunkInfo:
    """Write a chunk as one Arrow IPC stream; its checksum is made on the way.

    Each buffer begins at a multiple of 64 bytes. The engine copies decimals and views that do not
    begin at one of 16, and Arrow's own writer lets half of them begin at one of 8.

    Raises:
        OSError: the target cannot take it, for example because its disk is full.
        pa.ArrowInvalid: a batch is not of the schema.
    """
    writer = HashingWriter(target)
    try:
        # Each call into Python is dear.
        with io.BufferedWriter(writer, MIB) as sink:  # type: ignore[type-var]  # it is a raw stream
            arro3.io.write_ipc_stream(_reader(schema, batches), sink, compression=None)
    except Exception as exc:
        # The writer raises a plain `Exception` with the text of what the target raised.
        if writer.failure is not None and exc is not writer.failure:
            raise writer.failure from exc
        raise
    rows = sum(batch.num_rows for batch in batches)
    return ChunkInfo(index, rows, writer.size_bytes, writer.sha256)


def _reader(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatchReader:
    for batch in batches:
        if not batch.schema.equals(schema):
            raise pa.ArrowInvalid(f"a batch of ({batch.schema}) is no part of ({schema})")
    return pa.RecordBatchReader.from_batches(schema, batches)


def read(source: BinaryIO, key: str, chunk: ChunkInfo) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield the batches, some at a time, once all bytes are checked.

    Arrow does not bear damaged streams, so none is shown to it. What fits is held in memory from
    the check on; a larger chunk is read a second time, from the page cache.

    Raises:
        DamagedChunkError: the bytes are not those that were written.
    """
    if chunk.size_bytes > MOST_IN_MEMORY:
        _check(digest(source), key, chunk)
        source.seek(0)
        yield from _groups(pa.ipc.open_stream(source))
        return
    held = allocated(chunk.size_bytes)
    length = source.readinto(memoryview(held))  # type: ignore[attr-defined]  # of every real file
    if length != chunk.size_bytes or source.read(1):
        raise damaged(key, chunk)
    yield unpack(held, key, chunk)


def allocated(size_bytes: int) -> pa.Buffer:
    """Return memory for the bytes of a chunk.

    From the system, which gives out what was asked for: Arrow's own allocator takes half as much
    again for each block of some MiB, in huge pages that are zeroed before they are written.
    """
    return pa.allocate_buffer(size_bytes, memory_pool=pa.system_memory_pool())


def unpack(content: pa.Buffer, key: str, chunk: ChunkInfo) -> Sequence[pa.RecordBatch]:
    """Return the batches of a chunk whose bytes are all here.

    Raises:
        DamagedChunkError: the bytes are not those that were written.
    """
    _check(digest(content), key, chunk)
    return list(pa.ipc.open_stream(content))


def damaged(key: str, chunk: ChunkInfo) -> DamagedChunkError:
    return DamagedChunkError(
        f"result '{key}': chunk {chunk.index} is damaged where it is stored; run the query again, "
        "and check the disk of the result store",
        key,
    )


def gone(key: str, index: int) -> DamagedChunkError:
    return DamagedChunkError(
        f"result '{key}': chunk {index} cannot be read, it is gone: it expired or was deleted; "
        "run the query again",
        key,
    )


def _check(sha256: str, key: str, chunk: ChunkInfo) -> None:
    if sha256 != chunk.sha256:
        raise damaged(key, chunk)


def _groups(stream: pa.RecordBatchReader) -> Iterator[Sequence[pa.RecordBatch]]:
    """Gather small batches: a group is handed to another thread, which is not free."""
    group: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in stream:
        group.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= GROUP_BYTES:
            yield group
            group, size_bytes = [], 0
    yield group
