"""Rows that stay where they are made: an order to store an answer, and word of what was stored.

A statement or task with a `StoreOrder` runs as any other, only that its rows go to a result store
from where they are made. What comes back is a stream in the `STORED` schema, a row a chunk; the
schema of the rows themselves is in its metadata.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.errors import ResultTooLargeError
from caraway_core.partitions.keys import ByExpression, PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace

FIRST_ROWS = 10_000
"""The first chunk is closed at so many rows, so that a reader sees something soon."""
CHUNK_BYTES = 3 * 1024 * 1024
"""Every later chunk is closed at so many bytes, but not before it has `FIRST_ROWS` rows. Most then
fit in the 4 MiB that gRPC clients take in one message."""
GROWN_CHUNK_BYTES = 16 * 1024 * 1024
"""To so many bytes chunks of datasets grow: each is dealt out, named in every task over it, and
brought to disk by itself. Small datasets must have enough of them to be dealt out evenly."""
_GROWTH = 8
"""A chunk is no larger than that part of what is stored before it, but for small ones."""
MOST_CHUNK_BYTES = 32 * 1024 * 1024
"""At so many bytes any chunk is closed: rows may be so wide that 10,000 do not fit in memory."""
MOST_PARTITIONS = 1_000
"""An answer that falls into more partitions is refused: each is a chunk or more to read."""

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
    """Where the rows of an answer go.

    Several tasks may make one answer: `task` and `attempt` tell their chunks apart, and of each
    task only those of its last attempt count. `schema`, where given, is the one that the rows are
    stored in; tasks know their columns only by position. `most_bytes` bounds what one task stores.
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
    """Up to what chunks grow beyond that, the more is stored."""
    cut: PartitionBy = field(default_factory=PartitionBy)
    """What parts the rows: no chunk then holds rows of two partitions. The values of terms that
    are expressions are in the last columns of the answer, in order, which are not stored."""
    is_kept: bool = False
    """Whether the rows are going to be read where they are made, and so stay in memory there, for
    as long as somebody is likely to come for them."""

    def enough_bytes(self, stored_bytes: int) -> int:
        """Return at how many bytes a chunk is closed, behind so many bytes of others."""
        grown = min(stored_bytes // _GROWTH, self.grown_bytes or 0)
        return max(self.chunk_bytes, grown)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk, and which attempt of which task stored it."""

    task: int
    attempt: int
    chunk: ChunkInfo

    @property
    def is_chunk(self) -> bool:
        """Whether there is a chunk; without one this only says that a new attempt has begun."""
        return self.chunk.row_count > 0


def begun(task: int, attempt: int) -> StoredChunk:
    """Say that an attempt has begun: what earlier ones stored does not count, whatever comes."""
    return StoredChunk(task, attempt, ChunkInfo(0, 0, 0, ""))


def stored_schema(answer: pa.Schema) -> pa.Schema:
    """Return the schema of word about chunks of rows in the schema `answer`."""
    return pa.schema(_FIELDS, metadata={_ANSWER: answer.serialize().to_pybytes()})


def kept_schema(answer: pa.Schema, cut: PartitionBy) -> pa.Schema:
    """Return the columns of an answer that are stored: without the values of expressions."""
    extra = sum(isinstance(term, ByExpression) for term in cut.terms)
    fields = [answer.field(index) for index in range(len(answer) - extra)]
    return pa.schema(fields, metadata=answer.metadata)


def answer_schema(stored: pa.Schema) -> pa.Schema:
    """Return the schema of the rows themselves."""
    return pa.ipc.read_schema(pa.py_buffer(stored.metadata[_ANSWER]))


def pack(chunks: Sequence[StoredChunk], schema: pa.Schema) -> pa.RecordBatch:
    rows = [
        {
            "task": each.task,
            "attempt": each.attempt,
            "index": each.chunk.index,
            "row_count": each.chunk.row_count,
            "size_bytes": each.chunk.size_bytes,
            "sha256": each.chunk.sha256,
            "partition": each.chunk.partition,
            "home": each.chunk.home,
        }
        for each in chunks
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def unpack(batch: pa.RecordBatch) -> Sequence[StoredChunk]:
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
    """Return the chunks that count, in the order of the rows: of each task the last attempt."""
    last: dict[int, int] = {}
    found = list(chunks)
    for each in found:
        last[each.task] = max(each.attempt, last.get(each.task, 0))
    counting = [each for each in found if each.is_chunk and each.attempt == last[each.task]]
    counting.sort(key=lambda each: (each.task, each.chunk.index))
    return [each.chunk for each in counting]


def too_large(stored_bytes: int, most_bytes: int) -> ResultTooLargeError:
    """Word the refusal of an answer that grows too large."""
    return ResultTooLargeError(
        f"the result is too large: {stored_bytes:,} bytes of it are stored, which is over the "
        f"`maximum_size` of {most_bytes:,}; select fewer rows or columns, or ask with a larger "
        "`maximum_size`"
    )
