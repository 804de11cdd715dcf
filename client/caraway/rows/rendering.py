"""Writes record batches as text or files, batch by batch. Values look as the server writes them."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from caraway.rows import results

PARQUET_ROWS = 128 * 1024
_QUOTE = '"'
_SPECIAL = re.compile(r'[,"\r\n]')


def write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write an Arrow IPC stream."""
    with pa.ipc.new_stream(to, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write a Parquet file with row groups of 128 Ki rows."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(to, schema, compression="zstd") as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group, schema), row_group_size=PARQUET_ROWS)


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write CSV with a header. NULL is an empty cell, nested values are JSON."""
    to.write(_joined([tuple(map(_csv_cell, schema.names))]))
    for batch in batches:
        columns = [_csv_cells(column) for column in batch.columns]
        to.write(_joined(_rows(columns, batch.num_rows)))


def write_ndjson(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write one JSON object a line."""
    results.check_names(schema.names, "JSON")
    for batch in batches:
        to.write("".join(f"{row}\n" for row in _objects(batch)).encode())


def write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write one JSON array of objects."""
    results.check_names(schema.names, "JSON")
    before = "["
    for batch in batches:
        if text := ",\n".join(_objects(batch)):
            to.write(f"{before}{text}".encode())
            before = ",\n"
    to.write(b"[]\n" if before == "[" else b"]\n")


def write_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], to: BinaryIO) -> None:
    """Write a table with borders. Its columns are as wide as the first batch needs."""
    widths: list[int] = []
    names = list(schema.names)
    for batch in batches:
        columns = [_cells(column) for column in batch.columns]
        if not widths:
            widths = [
                max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=True)
            ]
            to.write(_border(widths) + _line(names, widths) + _border(widths))
        to.write(b"".join(_line(row, widths) for row in _rows(columns, batch.num_rows)))
    if not widths:
        widths = [len(name) for name in names]
        to.write(_border(widths) + _line(names, widths) + _border(widths))
    to.write(_border(widths))


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        if rows >= PARQUET_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _rows(columns: list[list[str]], count: int) -> Iterable[tuple[str, ...]]:
    return zip(*columns, strict=True) if columns else repeat((), count)


def _objects(batch: pa.RecordBatch) -> Iterator[str]:
    keys = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    columns = [
        [f"{key}:{text}" for text in _json_texts(column)]
        for key, column in zip(keys, batch.columns, strict=True)
    ]
    return (f"{{{','.join(row)}}}" for row in _rows(columns, batch.num_rows))


def _joined(rows: Iterable[tuple[str, ...]]) -> bytes:
    return "".join([f"{','.join(row)}\n" for row in rows]).encode()


# Any: a pyarrow array.
def _csv_cells(column: Any) -> list[str]:
    cells = _cells(column)
    kind = column.type
    # Numbers and times never need quotes; to look for them takes longest.
    if pa.types.is_nested(kind) or not pa.types.is_primitive(kind):
        return list(map(_csv_cell, cells))
    return cells


def _csv_cell(text: str) -> str:
    return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _SPECIAL.search(text) else text


def _border(widths: list[int]) -> bytes:
    return ("+" + "+".join("-" * (width + 2) for width in widths) + "+\n").encode()


def _line(cells: Iterable[str], widths: list[int]) -> bytes:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return ("| " + " | ".join(padded) + " |\n").encode()


# Any: a pyarrow array.
def _cells(column: Any) -> list[str]:
    """Return the values as text for people: strings as they are, everything else as in JSON.

    NULL is empty.
    """
    kind, values = column.type, _values(column)
    if pa.types.is_string(kind):
        return ["" if value is None else value for value in values]
    if pa.types.is_integer(kind):
        return ["" if value is None else str(value) for value in values]
    write = _json if pa.types.is_nested(kind) else _plain
    return ["" if value is None else write(value) for value in values]


# Any: a pyarrow array.
def _json_texts(column: Any) -> list[str]:
    kind, values = column.type, _values(column)
    if pa.types.is_integer(kind):
        return ["null" if value is None else str(value) for value in values]
    if pa.types.is_string(kind):
        return ["null" if value is None else encode_basestring(value) for value in values]
    return [_json(value) for value in values]


# Any: pyarrow arrays, and values of any type.
def _values(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _nanoseconds(column)
    try:
        return list(column.to_pylist())
    # Values that Python's types cannot hold.
    except (ValueError, OverflowError):
        return list(pc.cast(column, pa.string()).to_pylist())


# Any: a pyarrow array.
def _nanoseconds(column: Any) -> list[str | None]:
    whole = pc.cast(column, pa.timestamp("us", column.type.tz), safe=False).to_pylist()
    digits = pc.cast(column, pa.int64()).to_pylist()
    return [
        None if value is None else _with_digits(_plain(value), number % 1000)
        for value, number in zip(whole, digits, strict=True)
    ]


def _with_digits(text: str, nanoseconds: int) -> str:
    if not nanoseconds:
        return text
    place = 19 if "." not in text else 26
    dot = ".000000" if "." not in text else ""
    return f"{text[:place]}{dot}{nanoseconds:03d}{text[place:]}"


_SIMPLE: dict[type, Callable[[Any], str]] = {
    str: lambda given: json.dumps(given, ensure_ascii=False),
    bool: lambda given: "true" if given else "false",
    int: str,
    type(None): lambda _given: "null",
    float: lambda given: repr(given) if math.isfinite(given) else "null",
    Decimal: lambda given: format(given, "f"),
}


# Any: values of any type.
def _json(given: object) -> str:
    if (simple := _SIMPLE.get(type(given))) is not None:
        return simple(given)
    match given:
        case dict():
            inner = (f"{json.dumps(str(key))}:{_json(part)}" for key, part in given.items())
            return f"{{{','.join(inner)}}}"
        case list() | tuple():
            return f"[{','.join(map(_json, given))}]"
        case _:
            return json.dumps(_plain(given), ensure_ascii=False)


# Any: values of any type.
def _plain(given: object) -> str:
    match given:
        case str():
            return given
        case float():
            return repr(given)
        case bytes():
            return given.hex()
        case bool():
            return "true" if given else "false"
        case Decimal():
            return format(given, "f")
        case _ if hasattr(given, "isoformat"):
            return str(given.isoformat()).removesuffix("+00:00") + (
                "Z" if str(given.isoformat()).endswith("+00:00") else ""
            )
        case _:
            return str(given)
