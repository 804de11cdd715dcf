"""Storing result rows where they are made: store orders and descriptions of stored chunks.

A statement or task with a `StoreOrder` runs as usual, but writes its rows to a result store. It
returns a stream of chunk descriptions, one row per chunk. The metadata of that stream's schema
holds the schema of the stored rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.errors import ResultTooLargeError
from caraway_core.partitions.keys import ByExpression, PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace

FIRST_ROWS = 10_000
"""The first chunk is closed at this many rows, so that a reader gets rows early."""
CHUNK_BYTES = 3 * 1024 * 1024
"""Later chunks are closed at this size, once they have `FIRST_ROWS` rows. Most then fit in the 4
MiB that gRPC clients accept in one message.
"""
GROWN_CHUNK_BYTES = 16 * 1024 * 1024
"""The size up to which chunks of datasets grow. Each chunk is placed, named in every task and
flushed separately. Small datasets need enough chunks for an even placement.
"""
_GROWTH = 8
"""A chunk may be at most this fraction of the data stored before it, except for small ones."""
MOST_CHUNK_BYTES = 32 * 1024 * 1024
"""Any chunk is closed at this size: 10,000 wide rows may not fit in memory."""
MOST_PARTITIONS = 1_000
"""A result with more partitions is refused, because each needs at least one chunk."""

_FIELDS = [
    pa.field("task", pa.int32(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("index", pa.int32(), nullable=False),
    pa.field("row_count", pa.int64(), nullable=False),
    pa.field("size_bytes", pa.int64(), nullable=False),
    pa.field("sha256", pa.string(), nullable=False),
    pa.field("partition", pa.string(), nullable=False),
    pa.field("home", pa.string(), nullable=False),
]
_ANSWER = b"caraway.answer"


@dataclass(frozen=True, slots=True)
class StoreOrder:
    """Where the rows of a result are stored.

    Several tasks may produce one result. `task` and `attempt` identify their chunks, and only the
    last attempt of each task counts. `schema` overrides the schema of the stored rows, because
    tasks know their columns only by position. `most_bytes` limits the bytes that one task stores.
    """

    place: ResultPlace
    key: str
    most_bytes: int | None = None
    schema: pa.Schema | None = field(default=None, repr=False)
    task: int = 0
    attempt: int = 0
    first_rows: int = FIRST_ROWS
    chunk_bytes: int = CHUNK_BYTES
    grown_bytes: int | None = None
    """Maximum chunk size; chunks grow from `chunk_bytes` towards it as more data is stored."""
    cut: PartitionBy = field(default_factory=PartitionBy)
    """The partitioning: no chunk has rows of two partitions. The last columns of the result are the
    values of terms that are expressions, in order; they are not stored.
    """
    is_kept: bool = False
    """True if the rows will be read on this executor, and therefore stay in memory for a while."""

    def enough_bytes(self, stored_bytes: int) -> int:
        """Return the size at which a chunk is closed, given the bytes stored before it."""
        grown = min(stored_bytes // _GROWTH, self.grown_bytes or 0)
        return max(self.chunk_bytes, grown)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A stored chunk, with the task and the attempt that stored it."""

    task: int
    attempt: int
    chunk: ChunkInfo

    @property
    def is_chunk(self) -> bool:
        """True if this describes a chunk, not the start or the progress of an attempt."""
        return self.chunk.row_count > 0


def begun(task: int, attempt: int) -> StoredChunk:
    """Return a marker that an attempt began; chunks of earlier attempts no longer count."""
    return StoredChunk(task, attempt, ChunkInfo(0, 0, 0, ""))


def read_so_far(task: int, attempt: int, rows: int) -> StoredChunk:
    """Return a record of how many rows an attempt has read, stored or not."""
    return StoredChunk(task, attempt, ChunkInfo(rows, 0, 0, ""))


def rows_read(records: Iterable[StoredChunk]) -> int:
    """Return how many rows the last attempts of all tasks have read."""
    stored: dict[tuple[int, int], int] = {}
    read: dict[tuple[int, int], int] = {}
    last: dict[int, int] = {}
    for each in records:
        key = each.task, each.attempt
        last[each.task] = max(each.attempt, last.get(each.task, 0))
        stored[key] = stored.get(key, 0) + each.chunk.row_count
        if not each.is_chunk:
            read[key] = max(each.chunk.index, read.get(key, 0))
    return sum(max(stored[key], read.get(key, 0)) for key in last.items())


def stored_schema(answer: pa.Schema) -> pa.Schema:
    """Return the schema of chunk descriptions for rows in the schema `answer`."""
    return pa.schema(_FIELDS, metadata={_ANSWER: answer.serialize().to_pybytes()})


def kept_schema(answer: pa.Schema, cut: PartitionBy) -> pa.Schema:
    """Return the stored columns of a result, which are all except the values of expressions."""
    extra = sum(isinstance(term, ByExpression) for term in cut.terms)
    fields = [answer.field(index) for index in range(len(answer) - extra)]
    return pa.schema(fields, metadata=answer.metadata)


def answer_schema(stored: pa.Schema) -> pa.Schema:
    """Return the schema of the stored rows."""
    return pa.ipc.read_schema(pa.py_buffer(stored.metadata[_ANSWER]))


def pack(chunks: Sequence[StoredChunk], schema: pa.Schema) -> pa.RecordBatch:
    """Encode stored chunks as rows."""
    rows = [
        {
            "task": each.task,
            "attempt": each.attempt,
            "index": each.chunk.index,
            "row_count": each.chunk.row_count,
            "size_bytes": each.chunk.size_bytes,
            "sha256": each.chunk.checksum,
            "partition": each.chunk.partition,
            "home": each.chunk.home,
        }
        for each in chunks
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def unpack(batch: pa.RecordBatch) -> Sequence[StoredChunk]:
    """Decode stored chunks from rows."""
    return [
        StoredChunk(
            row["task"],
            row["attempt"],
            ChunkInfo(
                row["index"],
                row["row_count"],
                row["size_bytes"],
                row["sha256"],
                row["partition"],
                home=row["home"],
            ),
        )
        for row in batch.to_pylist()
    ]


def in_order(chunks: Iterable[StoredChunk]) -> Sequence[ChunkInfo]:
    """Return the chunks of the last attempt of each task, in row order."""
    last: dict[int, int] = {}
    stored_chunks = list(chunks)
    for each in stored_chunks:
        last[each.task] = max(each.attempt, last.get(each.task, 0))
    counting = [each for each in stored_chunks if each.is_chunk and each.attempt == last[each.task]]
    counting.sort(key=lambda each: (each.task, each.chunk.index))
    return [each.chunk for each in counting]


def too_large(stored_bytes: int, most_bytes: int) -> ResultTooLargeError:
    """Return the error for an answer that exceeds its size limit."""
    return ResultTooLargeError(
        f"the result is too large: {stored_bytes:,} bytes of it are stored, which is over the "
        f"`maximum_size` of {most_bytes:,}; select fewer rows or columns, or ask with a larger "
        "`maximum_size`"
    )
