"""Encodes JSON: an array of rows, one row per line, or the versioned format with a schema."""

import io
import json

import arro3.io
import pyarrow as pa

from caraway_serving.formats import columns
from caraway_serving.formats.datatypes import display


class JsonLines:
    """Encodes one JSON object per line."""

    def __init__(self) -> None:
        self._convert: columns.Conversion = columns.for_json

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return nothing: JSON lines have no header."""
        self._convert = columns.to_json(schema)
        return b""

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch."""
        buffer = io.BytesIO()
        arro3.io.write_ndjson(self._convert(batch), buffer, explicit_nulls=True)
        return buffer.getvalue()

    def end(self, elapsed_ms: int) -> bytes:
        """Return nothing: JSON lines have no footer."""
        return b""


class JsonArray:
    """Encodes a JSON array of row objects, keyed by column name; NULL is written as null."""

    def __init__(self) -> None:
        self.row_count = 0
        self._convert: columns.Conversion = columns.for_json

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the opening bracket."""
        self._convert = columns.to_json(schema)
        return b"["

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch, with a comma before all but the first."""
        if not batch.num_rows:
            return b""
        first = self.row_count == 0
        self.row_count += batch.num_rows
        buffer = io.BytesIO()
        arro3.io.write_json(self._convert(batch), buffer, explicit_nulls=True)
        objects = buffer.getbuffer()[1:-1]
        return bytes(objects) if first else b"," + objects

    def end(self, elapsed_ms: int) -> bytes:
        """Return the closing bracket."""
        return b"]"


class VersionedJson:
    """Encodes rows with their schema; the counts come last, when they are known."""

    def __init__(self) -> None:
        self._rows = JsonArray()

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the schema and the start of the rows."""
        self._rows.encode_start(schema)
        fields = [
            {
                "name": field.name,
                "data_type": display(field.type),
                "nullable": field.nullable,
                "dict_id": 0,
                "dict_is_ordered": bool(pa.types.is_dictionary(field.type) and field.type.ordered),
            }
            for field in schema
        ]
        head = json.dumps({"fields": fields}, separators=(",", ":"), ensure_ascii=False)
        return f'{{"schema":{head},"data":['.encode()

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch."""
        return self._rows.encode(batch)

    def end(self, elapsed_ms: int) -> bytes:
        """Return the end of the rows, with their count and the elapsed time."""
        return f'],"row_count":{self._rows.row_count},"execution_time_ms":{elapsed_ms}}}'.encode()
