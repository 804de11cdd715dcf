"""Passing an answer to the screen as it arrives, and counting its rows on the way."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from caraway.formats import Format


class View(Protocol):
    """Turns the chunks of an answer into what is shown; `rows` counts what went by."""

    rows: int

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]: ...


@dataclass(slots=True)
class TableView:
    """A bordered table: the rows are the `|` lines below the second border."""

    rows: int = 0
    _borders: int = 0
    _line: bytearray = field(default_factory=bytearray)

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self._feed(chunk)
        self._end_line()

    def _feed(self, chunk: bytes) -> None:
        first, *more = chunk.split(b"\n")
        self._line += first[:1]
        for line in more:
            self._end_line()
            self._line += line[:1]

    def _end_line(self) -> None:
        if self._line[:1] == b"+":
            self._borders += 1
        elif self._line[:1] == b"|" and self._borders >= 2:
            self.rows += 1
        self._line.clear()


@dataclass(slots=True)
class CsvView:
    """CSV: a record ends at a line break outside of quotes; the first is the header."""

    rows: int = -1
    _is_quoted: bool = False

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        last = b"\n"
        for chunk in chunks:
            yield chunk
            self._feed(chunk)
            last = chunk[-1:] or last
        self.rows = max(self.rows + (last != b"\n"), 0)

    def _feed(self, chunk: bytes) -> None:
        for number, part in enumerate(chunk.split(b'"')):
            self._is_quoted ^= number > 0
            self.rows += 0 if self._is_quoted else part.count(b"\n")


@dataclass(slots=True)
class LinesView:
    """One JSON object a line."""

    rows: int = 0

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        last = b"\n"
        for chunk in chunks:
            yield chunk
            self.rows += chunk.count(b"\n")
            last = chunk[-1:] or last
        self.rows += last != b"\n"


@dataclass(slots=True)
class ArrayView:
    """A JSON array, written from the lines of an NDJSON answer: so its rows can be counted."""

    rows: int = 0

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            yield b"".join(map(self._element, lines))
        yield self._element(rest) + (b"\n]\n" if self.rows else b"[]\n")

    def _element(self, line: bytes) -> bytes:
        if not line.strip():
            return b""
        self.rows += 1
        return (b"[\n  " if self.rows == 1 else b",\n  ") + line


@dataclass(frozen=True, slots=True)
class Presentation:
    """What the server is asked for, and how it is shown."""

    asked: Format
    view: Callable[[], View]


PRESENTATIONS = {
    Format.TABLE: Presentation(Format.TABLE, TableView),
    Format.CSV: Presentation(Format.CSV, CsvView),
    Format.NDJSON: Presentation(Format.NDJSON, LinesView),
    Format.JSON: Presentation(Format.NDJSON, ArrayView),
}
