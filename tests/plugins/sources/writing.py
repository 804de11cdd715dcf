"""Write the same rows as a file of each format."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pyarrow import orc

Rows = list[dict[str, Any]]
_AVRO = {int: "long", float: "double", str: "string", bool: "boolean"}


def parquet(rows: Rows) -> bytes:
    return parquet_table(pa.Table.from_pylist(rows))


def parquet_table(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def arrow_file(rows: Rows) -> bytes:
    return _arrow(pa.Table.from_pylist(rows), pa.ipc.new_file)


def arrow_stream(rows: Rows) -> bytes:
    return _arrow(pa.Table.from_pylist(rows), pa.ipc.new_stream)


def orc_file(rows: Rows) -> bytes:
    buffer = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


def avro(rows: Rows) -> bytes:
    fields = [
        {"name": name, "type": ["null", _AVRO[type(value)]]} for name, value in rows[0].items()
    ]
    buffer = io.BytesIO()
    fastavro.writer(buffer, {"type": "record", "name": "row", "fields": fields}, rows)
    return buffer.getvalue()


def delimited(rows: Rows, delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def lines(rows: Rows) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def array(rows: Rows) -> bytes:
    return json.dumps(rows, indent=1).encode()


FORMATS: Mapping[str, Callable[[Rows], bytes]] = {
    ".parquet": parquet,
    ".csv": delimited,
    ".tsv": lambda rows: delimited(rows, "\t"),
    ".json": array,
    ".ndjson": lines,
    ".jsonl": lines,
    ".arrow": arrow_file,
    ".ipc": arrow_stream,
    ".feather": arrow_file,
    ".avro": avro,
    ".orc": orc_file,
}

PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def _arrow(table: pa.Table, writer: Callable[..., Any]) -> bytes:
    buffer = io.BytesIO()
    with writer(buffer, table.schema) as stream:
        stream.write_table(table)
    return buffer.getvalue()
