"""Encodes CSV with a header row; NULL is an empty cell, and nested values are JSON."""

import csv
import io

import arro3.io
import pyarrow as pa

from caraway_serving.formats import columns


class Csv:
    """Encodes CSV as in RFC 4180, with line feeds as line ends."""

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the header row."""
        line = io.StringIO()
        # The writer quotes names with characters of its line end, so this one has both.
        csv.writer(line, lineterminator="\r\n").writerow(schema.names)
        return f"{line.getvalue()[:-2]}\n".encode() if schema.names else b""

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch."""
        if not batch.num_columns:
            return b""
        buffer = io.BytesIO()
        arro3.io.write_csv(columns.for_csv(batch), buffer, header=False)
        return buffer.getvalue()

    def end(self, elapsed_ms: int) -> bytes:
        """Return nothing: CSV has no footer."""
        return b""
