"""Encodes an Arrow IPC stream."""

import io

import pyarrow as pa

from caraway_serving.formats import columns


class IpcStream:
    """Encodes batches in the Arrow IPC format, with plain strings instead of string views."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the schema message."""
        self._schema = columns.without_views(schema)
        # A dictionary may differ between batches. Not all readers support deltas, so each batch
        # carries its complete dictionary.
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=False)
        self._writer = pa.ipc.new_stream(self._buffer, self._schema, options=options)
        return self._take()

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the messages of a batch."""
        assert self._writer is not None
        assert self._schema is not None
        if batch.schema != self._schema:
            batch = batch.cast(self._schema)
        self._writer.write_batch(batch)
        return self._take()

    def end(self, elapsed_ms: int) -> bytes:
        """Return the end-of-stream marker."""
        assert self._writer is not None
        self._writer.close()
        return self._take()

    def _take(self) -> bytes:
        written = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return written
