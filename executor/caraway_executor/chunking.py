"""Where the rows of an answer that is stored are cut into chunks."""

from collections.abc import Iterator

import pyarrow as pa

from caraway_core.protocols.storing import MOST_CHUNK_BYTES, StoreOrder

Chunk = list[pa.RecordBatch]
_FAR_LARGER = 2


class Chunker:
    """Gathers batches until they are a chunk. The first chunk is small, so that it is there soon.

    Batches stay whole, apart from those that alone are far larger than a chunk.
    """

    def __init__(self, order: StoreOrder, most_bytes: int = MOST_CHUNK_BYTES) -> None:
        self._order = order
        self._most_bytes = most_bytes
        self._is_first = True
        self._waiting: Chunk = []
        self._rows = self._size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[Chunk]:
        """Take a batch, and yield the chunks that are full with it."""
        for piece in self._pieces(batch):
            self._waiting.append(piece)
            self._rows += piece.num_rows
            self._size_bytes += piece.nbytes
            if self._is_full:
                yield self._taken()

    def rest(self) -> Iterator[Chunk]:
        """Yield what is left at the end, if there is something."""
        if self._waiting:
            yield self._taken()

    @property
    def _is_full(self) -> bool:
        if self._size_bytes >= self._most_bytes:
            return True
        is_long = self._rows >= self._order.first_rows
        return is_long and (self._is_first or self._size_bytes >= self._order.chunk_bytes)

    def _taken(self) -> Chunk:
        taken, self._waiting = self._waiting, []
        self._rows = self._size_bytes = 0
        self._is_first = False
        return taken

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        if batch.nbytes < _FAR_LARGER * self._order.chunk_bytes:
            yield batch
            return
        fitting = batch.num_rows * self._order.chunk_bytes // batch.nbytes
        most = max(1, batch.num_rows * self._most_bytes // batch.nbytes)
        step = min(most, max(self._order.first_rows, fitting))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)
