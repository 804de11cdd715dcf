"""JSON bodies as events: one object, an array of them, or one on each line."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from caraway_plugins.changes.target import BadChangesError

_BOM = b"\xef\xbb\xbf"
_PAYLOAD = b',"payload":'
_Read = Callable[[bytes | str], Any]


def events(body: bytes, is_exact: bool = False) -> list[Any]:
    """Read the events of a body; `is_exact` keeps each digit of numbers, and is slower.

    Raises:
        BadChangesError: it is not JSON.
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
        # An object that is laid out over several lines.
        return _whole(body, read)
    return [first, *_lines(lines, read)]


def reader(is_exact: bool) -> _Read:
    """Return what reads JSON, and raises ValueError at anything else."""
    return _exactly if is_exact else orjson.loads


def _whole(body: bytes, read: _Read) -> list[Any]:
    try:
        document = read(body)
    except (ValueError, RecursionError) as exc:
        raise BadChangesError(f"the body is not JSON: {_reason(exc)}") from exc
    return document if isinstance(document, list) else [document]


def _lines(lines: list[bytes], read: _Read) -> list[Any]:
    found = []
    shared = _Shared(lines[0], read)
    for number, line in enumerate(lines[1:], 2):
        if not line or line.isspace():
            continue
        try:
            found.append(shared.read(line))
        except (ValueError, RecursionError) as exc:
            raise BadChangesError(f"line {number} is not JSON: {_reason(exc)}") from exc
    return found


class _Shared:
    """Reads the schema once that stands at the start of each line, byte for byte the same.

    It is many times as long as the event that follows it.
    """

    def __init__(self, line: bytes, read: _Read) -> None:
        self._read = read
        self._start = b""
        self._schema: Any = None
        end = line.rfind(_PAYLOAD) if line.startswith(b'{"schema":') else -1
        while end > 0:
            try:
                self._schema = read(line[:end] + b"}")["schema"]
            except ValueError:
                # The word stands in the event as well; its own place is before that.
                end = line.rfind(_PAYLOAD, 0, end)
                continue
            self._start = line[: end + len(_PAYLOAD)]
            return

    def read(self, line: bytes) -> Any:
        if self._start and line.startswith(self._start):
            rest = line.rstrip()
            try:
                payload = self._read(rest[len(self._start) : -1])
            except ValueError:
                return self._read(line)
            if rest.endswith(b"}"):
                return {"schema": self._schema, "payload": payload}
        return self._read(line)


def _exactly(body: bytes | str) -> Any:
    return json.loads(body, parse_float=Decimal, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _reason(exc: Exception) -> str:
    return "it is nested too deeply" if isinstance(exc, RecursionError) else str(exc)
