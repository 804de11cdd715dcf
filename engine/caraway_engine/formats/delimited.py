"""Comma-separated values with a header row; NULL is an empty cell, nested values are JSON."""

import csv
import io

import arro3.io
import pyarrow as pa

from caraway_engine.formats import columns


class Csv:
    """Values as RFC 4180 has them, lines ended by a line feed."""

    def begin(self, schema: pa.Schema) -> bytes:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(schema.names)
        return line.getvalue().encode() if schema.names else b""

    def encode(self, batch: pa.RecordBatch) -> bytes:
        if not batch.num_columns:
            return b""
        buffer = io.BytesIO()
        arro3.io.write_csv(columns.for_csv(batch), buffer, header=False)
        return buffer.getvalue()

    def end(self, elapsed_ms: int) -> bytes:
        return b""
