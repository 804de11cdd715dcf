"""Encodes a bordered text table for people."""

import csv
import io
import unicodedata
from collections.abc import Sequence

import pyarrow as pa

from caraway_serving.formats.delimited import Csv

_ROWS_TO_MEASURE = 10_000


class BorderedTable:
    """Encodes a text table.

    Widths fit the header and the first 10,000 rows. Later values may be wider.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._rows: list[list[str]] = []
        self._widths: list[int] | None = None

    def encode_start(self, schema: pa.Schema) -> bytes:
        self._names = list(map(_printable, schema.names))
        return b""

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the lines that can be written with the known widths."""
        self._rows.extend(_cells(batch))
        if self._widths is None and len(self._rows) < _ROWS_TO_MEASURE:
            return b""
        return self._flush()

    def end(self, elapsed_ms: int) -> bytes:
        """Return the remaining lines and the bottom border."""
        return self._flush() + _rule(self._widths or [])

    def _flush(self) -> bytes:
        head = b""
        if self._widths is None:
            self._widths = _widths([self._names, *self._rows])
            rule = _rule(self._widths)
            head = rule + _line(self._names, self._widths).encode() + rule
        widths = self._widths
        body = "".join(_line(row, widths) for row in self._rows)
        self._rows = []
        return head + body.encode()


def _cells(batch: pa.RecordBatch) -> list[list[str]]:
    if not batch.num_columns:
        return [[] for _ in range(batch.num_rows)]
    text = Csv().encode(batch).decode()
    # A cell may be longer than the 128 KiB that the reader takes by default.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return [[_printable(cell) for cell in row] for row in rows]


def _printable(cell: str) -> str:
    return cell.replace("\\", "\\\\").translate(_ESCAPES) if not cell.isprintable() else cell


_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), 127)}


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_width, column)) for column in zip(*rows, strict=True)]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)
    ]
    return f"| {' | '.join(padded)} |\n"


def _rule(widths: Sequence[int]) -> bytes:
    return ("+" + "+".join("-" * (width + 2) for width in widths) + "+\n").encode()
