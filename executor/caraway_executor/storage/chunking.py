"""Splits the rows of a stored result into chunks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.protocols.storing import MOST_CHUNK_BYTES, MOST_PARTITIONS, StoreOrder
from caraway_engine.rows import plain
from caraway_executor.storage.parting import Parting

Chunk = list[pa.RecordBatch]
_FAR_LARGER = 2
_GATHERED_BYTES = 16 * 1024 * 1024
_GATHERED_ROWS = 128 * 1024
WAITING_BYTES = 128 * 1024 * 1024
"""The most bytes buffered for all partitions together before the largest one is closed."""


class Chunker:
    """Collects batches into chunks. The first chunk is small, so that it is available early.

    Batches are not split, except those that are much larger than a chunk.
    """

    def __init__(self, order: StoreOrder, most_bytes: int = MOST_CHUNK_BYTES) -> None:
        self._order = order
        self._most_bytes = most_bytes
        self._is_first = True
        self._waiting: Chunk = []
        self._rows = self._size_bytes = self._past_bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[Chunk]:
        """Add a batch, and yield the chunks that are now full."""
        for piece in self._pieces(batch):
            self._waiting.append(piece)
            self._rows += piece.num_rows
            self._size_bytes += piece.nbytes
            if self._is_full:
                yield self._taken()

    def rest(self) -> Iterator[Chunk]:
        """Yield the last chunk, if any rows are left."""
        if self._waiting:
            yield self._taken()

    @property
    def _is_full(self) -> bool:
        if self._size_bytes >= self._most_bytes:
            return True
        is_long = self._rows >= self._order.first_rows
        enough = self._order.enough_bytes(self._past_bytes)
        return is_long and (self._is_first or self._size_bytes >= enough)

    def _taken(self) -> Chunk:
        taken, self._waiting = self._waiting, []
        self._past_bytes += self._size_bytes
        self._rows = self._size_bytes = 0
        self._is_first = False
        return taken

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        enough = self._order.enough_bytes(self._past_bytes)
        if batch.nbytes < _FAR_LARGER * enough:
            yield batch
            return
        fitting = batch.num_rows * enough // batch.nbytes
        most = max(1, batch.num_rows * self._most_bytes // batch.nbytes)
        step = min(most, max(self._order.first_rows, fitting))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


class Gathering:
    """Collects batches until copying them pays off, but at most the size of a chunk.

    The first rows are returned early, like the first chunk.
    """

    def __init__(self, order: StoreOrder) -> None:
        self._order = order
        self._is_first = True
        self._waiting: Chunk = []
        self._rows = self._size_bytes = self._past_bytes = 0

    def add(self, batch: pa.RecordBatch) -> Chunk:
        """Add a batch, and return the collected batches if there are enough."""
        if not batch.num_rows:
            return []
        self._waiting.append(batch)
        self._rows += batch.num_rows
        # Views count all of the text that they point into, so this never underestimates.
        self._size_bytes += batch.nbytes
        is_long = self._is_first and self._rows >= self._order.first_rows
        enough = self._order.enough_bytes(self._past_bytes)
        return self.rest() if is_long or self._size_bytes >= enough else []

    def rest(self) -> Chunk:
        """Return the collected batches."""
        gathered, self._waiting = self._waiting, []
        self._past_bytes += self._size_bytes
        self._rows = self._size_bytes = 0
        self._is_first = False
        return gathered


@dataclass(slots=True)
class _Waiting:
    pieces: Chunk = field(default_factory=list)
    size_bytes: int = 0


class PartitionChunker:
    """Collects the rows of each partition into chunks.

    Many batches are partitioned at once, because the cost is per partition, not per row.
    """

    def __init__(
        self,
        order: StoreOrder,
        schema: pa.Schema,
        waiting_bytes: int = WAITING_BYTES,
        pool: pa.MemoryPool | None = None,
    ) -> None:
        """Take the order that defines the partitions; chunks are allocated from `pool`."""
        self._pool = pool
        self._schema = plain.plain_schema(schema)
        self._parting = Parting(order.cut, schema)
        # Executors get whole partitions, so their chunks may be large from the start.
        self._chunk_bytes = min(order.grown_bytes or order.chunk_bytes, MOST_CHUNK_BYTES)
        self._waiting_bytes = waiting_bytes
        self._gathered: Chunk = []
        self._gathered_rows = self._gathered_bytes = self._parted_bytes = 0
        self._waiting: dict[str, _Waiting] = {}

    def gather(self, batch: pa.RecordBatch) -> bool:
        """Add a batch; return whether it is time to call `part`."""
        if batch.num_rows:
            self._gathered.append(batch)
            self._gathered_rows += batch.num_rows
            self._gathered_bytes += batch.nbytes
        is_long = self._gathered_rows >= _GATHERED_ROWS
        return is_long or self._gathered_bytes >= _GATHERED_BYTES

    def part(self) -> list[tuple[str, Chunk]]:
        """Partition the collected rows, and return the chunks that are now full, by partition.

        Raises:
            ExecutionError: there are too many partitions, or the rows cannot be partitioned.
        """
        gathered, self._gathered = self._gathered, []
        self._gathered_rows = self._gathered_bytes = 0
        if not gathered:
            return []
        return [
            chunk
            for rows in plain.plain_table(gathered, self._schema).to_batches()
            for partition, piece in self._parting.parts(rows)
            for chunk in self._wait(partition, piece)
        ]

    def rest(self) -> list[tuple[str, Chunk]]:
        """Return the last chunks. Raises the same as `part`."""
        chunks = self.part()
        left = [partition for partition, waiting in self._waiting.items() if waiting.pieces]
        return chunks + [self._taken(partition) for partition in left]

    def _wait(self, partition: str, piece: pa.RecordBatch) -> Iterator[tuple[str, Chunk]]:
        waiting = self._waiting.get(partition)
        if waiting is None:
            self._check_count()
            waiting = self._waiting[partition] = _Waiting()
        waiting.pieces.append(piece)
        waiting.size_bytes += piece.nbytes
        self._parted_bytes += piece.nbytes
        if waiting.size_bytes >= self._chunk_bytes:
            yield self._taken(partition)
        while self._parted_bytes > self._waiting_bytes:
            yield self._taken(max(self._waiting, key=lambda each: self._waiting[each].size_bytes))

    def _taken(self, partition: str) -> tuple[str, Chunk]:
        waiting = self._waiting[partition]
        self._waiting[partition] = _Waiting()
        self._parted_bytes -= waiting.size_bytes
        pieces = waiting.pieces
        if len(pieces) > 1:
            # Reading back one batch makes scans faster than many small ones.
            pieces = plain.plain_table(pieces, pieces[0].schema, self._pool).to_batches()
        return partition, pieces

    def _check_count(self) -> None:
        if len(self._waiting) >= MOST_PARTITIONS:
            raise ExecutionError(
                f"the rows fall into more than {MOST_PARTITIONS:,} partitions; partition by "
                "a column or expression with fewer values, or by 'bucket(n, column)' with a "
                "smaller n"
            )
