"""Reads events from JSON: one object, an array of objects, or one object per line."""

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import orjson

from caraway_core.json_texts import strict_json
from caraway_plugins.changes.target import BadChangesError

_BOM = b"\xef\xbb\xbf"
_PAYLOAD = b',"payload":'
# Numbers that a double may not hold: of more than 15 digits, or far from 1. Integers of 64 bits are
# not read as doubles.
_LONG = rb"(?:[0-9]{20}|[0-9]{16,}[eE]|(?=[0-9.]{17})[0-9]+\.|[0-9.]+[eE][-+]?[0-9]{3})"
_PIECE_BYTES = 256 * 1024
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
"""Between two events, or between two objects inside of one."""
_CUTS = 8
"""The places that are tried for the end of a piece."""
_Read = Callable[[bytes | str], Any]


def events(body: bytes, is_exact: bool = False) -> list[object]:
    """Read the events of a body; `is_exact` keeps all digits of numbers, which is slower.

    Raises:
        BadChangesError: the body is not JSON.
    """
    body = body.removeprefix(_BOM).strip()
    if not body:
        raise BadChangesError("the body is empty; send at least one event")
    read = reader(is_exact)
    if body.startswith(b"[") or b"\n" not in body:
        return _whole(body, read)
    lines = body.split(b"\n")
    try:
        first = read(lines[0])
    except ValueError:
        # One object that is formatted over several lines.
        return _whole(body, read)
    return [first, *_lines(lines, read)]


def reader(is_exact: bool) -> _Read:
    """Return a function that parses JSON and raises ValueError for anything else."""
    return strict_json.parse_exactly if is_exact else _quickly


def may_round(body: bytes, name: str | None = None) -> bool:
    """Return whether there are numbers in a body that lose digits as doubles.

    With a name, only numbers that are the value of such a key count.
    """
    if name is None or b"\\" in body:  # Keys may have escapes, or be in JSON inside of a text.
        return re.search(_LONG, body) is not None
    key = orjson.dumps(name)
    return re.search(re.escape(key) + rb"\s*:\s*-?" + _LONG, body) is not None


def _whole(body: bytes, read: _Read) -> list[object]:
    if len(body) > _PIECE_BYTES and (found := _by_pieces(body, read)) is not None:
        return found
    try:
        document = read(body)
    except (ValueError, RecursionError) as exc:
        raise BadChangesError(f"the body is not JSON: {_reason(exc)}") from exc
    return document if isinstance(document, list) else [document]


def _by_pieces(body: bytes, read: _Read) -> list[object] | None:
    """Read a long array in pieces, between which other threads go on; None if that fails.

    What follows a whole list of events is an event, if a comma is between them. So a piece that
    begins behind an event, and can be read as a list, ends with an event as well.
    """
    if not (body.startswith(b"[") and body.endswith(b"]")):
        return None
    # The strict parser would read the rest of the piece again wherever a cut is wrong.
    read_piece: Callable[[bytes], Any] = _only_quickly if read is _quickly else read
    found: list[Any] = []
    start, end = 1, len(body) - 1
    while end - start > _PIECE_BYTES:
        for cut in islice(_BETWEEN.finditer(body, start + _PIECE_BYTES, end), _CUTS):
            try:
                found += read_piece(b"[%b]" % body[start : cut.start() + 1])
            except (ValueError, RecursionError):
                continue
            start = cut.end() - 1
            break
        else:
            return None
    try:
        found += read_piece(b"[%b]" % body[start:end])
    except (ValueError, RecursionError):
        return None
    return found


def _lines(lines: list[bytes], read: _Read) -> list[object]:
    shared = _Shared(lines[0], read)
    if shared.is_of_use or read is not _quickly:
        return _each(lines, shared.read)
    found = _each(lines, orjson.loads)
    # Checking all lines together is faster than checking each line.
    if _may_hide_keys(b"".join(lines[1:]), found):
        return _each(lines, strict_json.parse)
    return found


def _each(lines: list[bytes], read: _Read) -> list[object]:
    found = []
    for number, line in enumerate(lines[1:], 2):
        if not line or line.isspace():
            continue
        try:
            found.append(read(line))
        except (ValueError, RecursionError) as exc:
            raise BadChangesError(f"line {number} is not JSON: {_reason(exc)}") from exc
    return found


class _Shared:
    """Parses the schema at the start of each line only once, if all lines have the same bytes.

    The schema is many times longer than the event after it.
    """

    def __init__(self, line: bytes, read: _Read) -> None:
        self._read = read
        self._start = b""
        self._schema: object = None
        end = line.rfind(_PAYLOAD) if line.startswith(b'{"schema":') else -1
        while end > 0:
            try:
                self._schema = read(line[:end] + b"}")["schema"]
            except ValueError:
                # The text also occurs in the event; the real position is before it.
                end = line.rfind(_PAYLOAD, 0, end)
                continue
            self._start = line[: end + len(_PAYLOAD)]
            return

    @property
    def is_of_use(self) -> bool:
        return bool(self._start)

    def read(self, line: bytes | str) -> object:
        if isinstance(line, bytes) and self._start and line.startswith(self._start):
            rest = line.rstrip()
            try:
                payload = self._read(rest[len(self._start) : -1])
            except ValueError:
                return self._read(line)
            if rest.endswith(b"}"):
                return {"schema": self._schema, "payload": payload}
        return self._read(line)


def _quickly(body: bytes | str) -> object:
    """Parse with orjson, and parse strictly where orjson may have dropped a duplicate key."""
    text = body.encode() if isinstance(body, str) else body
    try:
        return _only_quickly(text)
    except orjson.JSONDecodeError:
        # The strict parser has better messages, and accepts some numbers that orjson rejects.
        return strict_json.parse(text)


def _only_quickly(text: bytes) -> object:
    value = orjson.loads(text)
    if _may_hide_keys(text, value):
        strict_json.parse(text)
    return value


def _may_hide_keys(text: bytes, value: object) -> bool:
    """Return whether keys may be missing: the text has other colons than its value, or escapes."""
    try:
        is_same = text.count(b":") == orjson.dumps(value).count(b":")
    except TypeError:  # orjson reads more levels of nesting than it writes.
        return True
    return not is_same or (b"\\" in text and b"\\u003" in text)


def _reason(exc: Exception) -> str:
    return "it is nested too deeply" if isinstance(exc, RecursionError) else str(exc)
