"""Parses the JSON that a runtime sends and rejects everything else. No I/O."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from caraway.errors import BrokenResponseError

# Any: the types of the values depend on the data.
Row = dict[str, Any]


def iter_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split a stream of bytes into lines. The last line may lack its line break."""
    # Parts, because adding each chunk to the rest would copy a long line again and again.
    parts: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        parts.append(first)
        if not others:
            continue
        *complete, rest = others
        yield from filter(None, (b"".join(parts), *complete))
        parts = [rest]
    if (rest := b"".join(parts)).strip():
        yield rest


def parse_object(text: str | bytes) -> Row:
    """Parse a JSON object.

    Raises:
        BrokenResponseError: the text is not a JSON object.
    """
    match _parsed(text):
        case dict() as found:
            return found
    raise BrokenResponseError(f"expected a JSON object, but the server sent: {text[:200]!r}")


def parse_list(body: str, key: str = "") -> list[Row]:
    """Parse a JSON array of objects, or the array under `key` of a JSON object.

    Raises:
        BrokenResponseError: there is no such array.
    """
    parsed = _parsed(body)
    found = parsed.get(key) if key and isinstance(parsed, dict) else parsed
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BrokenResponseError(
            f"expected a JSON array of objects, but the server sent: {body[:200]!r}"
        )
    return found


def lines_to_array(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Convert a stream of JSON lines to one JSON array.

    JSON values contain no raw line breaks, so each line break separates two elements.
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
        raise BrokenResponseError(f"expected JSON, but the server sent: {text[:200]!r}") from exc
