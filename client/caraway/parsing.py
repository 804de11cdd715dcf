"""Reading what a runtime sends: JSON that may turn out to be something else; no I/O."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from caraway.errors import BrokenAnswerError

# What JSON holds depends on the data, which only the caller knows.
Row = dict[str, Any]


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut bytes, as they arrive, into lines; the last one needs no end."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from filter(None, whole)
    if rest.strip():
        yield rest


def row(line: str | bytes) -> Row:
    """Read a JSON object.

    Raises:
        BrokenAnswerError: it is something else.
    """
    match _parsed(line):
        case dict() as found:
            return found
    raise BrokenAnswerError(f"an object is expected, and the server sent: {line[:200]!r}")


def rows(body: str, key: str = "") -> list[Row]:
    """Read a JSON array, or the one under a key of an object.

    Raises:
        BrokenAnswerError: it is something else.
    """
    parsed = _parsed(body)
    found = parsed.get(key) if key and isinstance(parsed, dict) else parsed
    if not isinstance(found, list):
        raise BrokenAnswerError(f"a list is expected, and the server sent: {body[:200]!r}")
    return found


def array(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Turn lines of JSON, as they arrive, into one JSON array.

    No value holds a raw line break, so what ends a line parts the elements.
    """
    yield b"["
    ends = b""
    for chunk in chunks:
        text = ends + chunk
        line = text.rstrip(b"\n")
        ends = text[len(line) :]
        if line:
            yield line.replace(b"\n", b",\n")
    yield b"]\n"


def _parsed(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except ValueError as exc:
        raise BrokenAnswerError(f"JSON is expected, and the server sent: {text[:200]!r}") from exc
