"""Shows results as they arrive and counts their rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from caraway.rows.formats import Format


class ResultView(Protocol):
    """Converts the chunks of a response to what is shown; `rows` counts the rows so far."""

    rows: int

    def show(self, chunks: Iterable[bytes]) -> Iterator[bytes]: ...


@dataclass(slots=True)
class TableView:
    """A table with borders. Its rows are the `|` lines below the second border."""

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
    """CSV. A record ends at a line break outside quotes; the first record is the header."""

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
    """One JSON object per line."""

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
    """A JSON array built from NDJSON lines, since rows in a JSON array are harder to count."""

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
    """The format to request from the server, and the view that shows it."""

    request_format: Format
    view: Callable[[], ResultView]


PRESENTATIONS = {
    Format.TABLE: Presentation(Format.TABLE, TableView),
    Format.CSV: Presentation(Format.CSV, CsvView),
    Format.NDJSON: Presentation(Format.NDJSON, LinesView),
    Format.JSON: Presentation(Format.NDJSON, ArrayView),
}
