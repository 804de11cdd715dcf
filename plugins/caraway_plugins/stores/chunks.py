"""The common part of result stores: names of chunks, and their encoding with a checksum."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import arro3.io
import pyarrow as pa

from caraway_core.errors import CarawayError, DamagedChunkError
from caraway_core.protocols.results import ChunkInfo
from caraway_plugins.stores import aligned_streams, checksums
from caraway_plugins.stores.checksums import ChecksumWriter

MIB = 1024 * 1024
MOST_IN_MEMORY = 64 * MIB
"""Larger chunks, which only very long rows cause, are read a few batches at a time."""
GROUP_BYTES = 4 * MIB

# Without separators and a leading dot, a name cannot leave its folder or match the workshop.
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_CHECKSUM = re.compile(r"[0-9a-f]{64}")


def is_key(name: str) -> bool:
    """Return whether the name is a valid key."""
    return _KEY.fullmatch(name) is not None


def checked_key(key: str) -> str:
    """Return the key unchanged.

    Raises:
        CarawayError: the key is not a plain name.
    """
    if not is_key(key):
        raise CarawayError(
            f"result key {key!r} is not allowed: use up to 200 letters, digits, '_', '-' "
            "and '.', and no '.' at the start"
        )
    return key


def file_name(index: int, checksum: str) -> str:
    """Return the file name of a chunk; it has the checksum, so writers never collide.

    Raises:
        CarawayError: the index or the checksum is invalid.
    """
    if index < 0 or not _CHECKSUM.fullmatch(checksum):
        raise CarawayError(f"chunk {index} with checksum {checksum!r} cannot be a stored chunk")
    return f"{index:08d}-{checksum}.arrow"


def write(
    target: BinaryIO,
    index: int,
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    checksum: str = "",
) -> ChunkInfo:
    """Write a chunk as one Arrow IPC stream, and compute its checksum while writing.

    With the `checksum` of a chunk that is written again, it has the same one if its bytes are the
    same.

    Raises:
        OSError: the target cannot be written, for example because its disk is full.
        pa.ArrowInvalid: a batch does not have the schema.
    """
    for batch in batches:
        if not batch.schema.equals(schema):
            raise pa.ArrowInvalid(f"a batch of ({batch.schema}) does not match ({schema})")
    writer = ChecksumWriter(target, checksum)
    # A small write is as slow as a large one, so they are put together.
    with io.BufferedWriter(writer, MIB) as sink:  # type: ignore[type-var]  # it is a raw stream
        before = _as_before(schema, batches) if checksum else b""
        if checksum and checksums.match(before, checksum):
            sink.write(before)
        else:
            aligned_streams.write(sink, schema, batches)
    rows = sum(batch.num_rows for batch in batches)
    return ChunkInfo(index, rows, writer.size_bytes, writer.checksum)


def _as_before(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    """Return the bytes that the release before wrote for these rows."""
    content = io.BytesIO()
    rows = pa.RecordBatchReader.from_batches(schema, batches)
    arro3.io.write_ipc_stream(rows, content, compression=None)
    return content.getvalue()


def read(source: BinaryIO, key: str, chunk: ChunkInfo) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield the batches, in groups, after a check of all bytes.

    Arrow is not safe with damaged streams, so it only gets verified bytes. A chunk that fits is
    kept in memory after the check. A larger chunk is read again, from the page cache.

    Raises:
        DamagedChunkError: the bytes do not have the checksum.
    """
    if chunk.size_bytes > MOST_IN_MEMORY:
        _check(source, key, chunk)
        source.seek(0)
        yield from _groups(pa.ipc.open_stream(source))
        return
    held = allocated(chunk.size_bytes)
    length = source.readinto(memoryview(held))  # type: ignore[attr-defined]  # of every real file
    if length != chunk.size_bytes or source.read(1):
        raise damaged(key, chunk)
    yield unpack(held, key, chunk)


def allocated(size_bytes: int) -> pa.Buffer:
    """Return memory for the bytes of a chunk, from the system allocator.

    Arrow's own allocator uses half as much again for blocks of some MiB, in huge pages that are
    zeroed first.
    """
    return pa.allocate_buffer(size_bytes, memory_pool=pa.system_memory_pool())


def unpack(content: pa.Buffer, key: str, chunk: ChunkInfo) -> Sequence[pa.RecordBatch]:
    """Return the batches of a chunk from its complete bytes.

    Raises:
        DamagedChunkError: the bytes do not have the checksum.
    """
    _check(content, key, chunk)
    return list(pa.ipc.open_stream(content))


def damaged(key: str, chunk: ChunkInfo) -> DamagedChunkError:
    """Return the error for a chunk whose bytes do not have its checksum."""
    return DamagedChunkError(
        f"result '{key}': chunk {chunk.index} is damaged in the result store; run the query again, "
        "and check the disk of the result store",
        key,
    )


def gone(key: str, index: int) -> DamagedChunkError:
    """Return the error for a chunk that no longer exists."""
    return DamagedChunkError(
        f"result '{key}': chunk {index} no longer exists: it expired or was deleted; "
        "run the query again",
        key,
    )


def _check(content: BinaryIO | pa.Buffer, key: str, chunk: ChunkInfo) -> None:
    if not checksums.match(content, chunk.checksum):
        raise damaged(key, chunk)


def _groups(stream: pa.RecordBatchReader) -> Iterator[Sequence[pa.RecordBatch]]:
    """Group small batches, because handing each one to another thread is expensive."""
    group: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in stream:
        group.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= GROUP_BYTES:
            yield group
            group, size_bytes = [], 0
    yield group
