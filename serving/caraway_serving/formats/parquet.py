"""Encodes Parquet as a stream of row groups; only one group is buffered."""

import io
from typing import TYPE_CHECKING

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_serving.formats import columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_GROUP_ROWS = 128 * 1024
_GROUP_BYTES = 16 * 1024 * 1024


class Parquet:
    """Encodes rows as a Parquet file, with plain strings instead of string views.

    A row group ends at a number of rows or bytes, whichever comes first. The footer comes last.
    """

    def __init__(self) -> None:
        self._sink = _Sink()
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
        self._group: list[pa.RecordBatch] = []
        self._group_rows = 0
        self._group_bytes = 0

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the start of the file.

        Raises:
            InvalidQueryError: Parquet does not support the type of a column.
        """
        import pyarrow.parquet as pq  # Slow to import; few results need it.

        self._schema = columns.without_views(schema)
        if not schema.names:
            raise InvalidQueryError("rows without columns cannot be written as Parquet")
        try:
            self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        except (pa.ArrowException, OSError) as exc:
            raise InvalidQueryError(
                f"these rows cannot be written as Parquet: {exc}; cast the column to text, or "
                "request another format"
            ) from exc
        return self._sink.take_bytes()

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the row groups that are complete after a batch."""
        if batch.schema != self._schema:
            batch = batch.cast(self._schema)
        for start in range(0, batch.num_rows, _GROUP_ROWS):
            self._add(batch.slice(start, _GROUP_ROWS))
        return self._sink.take_bytes()

    def end(self, elapsed_ms: int) -> bytes:
        """Return the last row group and the footer."""
        assert self._writer is not None
        self._flush()
        self._writer.close()
        return self._sink.take_bytes()

    def _add(self, batch: pa.RecordBatch) -> None:
        self._group.append(batch)
        self._group_rows += batch.num_rows
        self._group_bytes += batch.nbytes
        if self._group_rows >= _GROUP_ROWS or self._group_bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        assert self._writer is not None
        if self._group:
            self._writer.write_table(pa.Table.from_batches(self._group))
            self._group, self._group_rows, self._group_bytes = [], 0, 0


class _Sink(io.RawIOBase):
    """Buffers written bytes until they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """Return True: the sink accepts writes."""
        return True

    def write(self, data: object) -> int:
        """Buffer bytes, and return their number."""
        part = bytes(data)  # type: ignore[call-overload] # any buffer; typeshed has it private
        self._parts.append(part)
        return len(part)

    def take_bytes(self) -> bytes:
        """Return and clear the buffered bytes."""
        written = b"".join(self._parts)
        self._parts.clear()
        return written
