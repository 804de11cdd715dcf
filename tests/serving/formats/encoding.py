"""Encodes whole answers, and reads them back with readers that are not ours."""

import csv
import io
import json
from typing import Any

import pyarrow as pa

from caraway_serving import formats
from caraway_serving.formats import Format


def encode(format_: Format, *batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    encoder = formats.make(format_)
    parts = [encoder.encode_start(schema or batches[0].schema)]
    parts += [encoder.encode(batch) for batch in batches]
    return b"".join((*parts, encoder.end(3)))


def one(values: list[Any], type_: pa.DataType | None = None) -> pa.RecordBatch:
    """Make a batch of one column, `c`."""
    return pa.record_batch({"c": pa.array(values, type_)})


def cells(answer: bytes) -> list[str]:
    """Return the cells of the only column of CSV, without its header."""
    rows = list(csv.reader(io.StringIO(answer.decode(), newline="")))
    return [row[0] for row in rows[1:]]


def values(answer: bytes) -> list[Any]:
    """Return the values of the column `c` of a JSON array."""
    return [row["c"] for row in json.loads(answer)]
