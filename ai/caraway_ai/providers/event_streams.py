"""Reads server-sent events from bytes as they arrive."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

MOST_BYTES = 16 * 1024 * 1024
"""Of one event."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; `event` is empty where the server named none."""

    event: str
    data: bytes


class EventReader:
    """Cuts a stream of bytes into events."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        """The parts of a line whose end has not come."""
        self._pending_bytes = 0
        self._event = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._is_first = True
        self._ended_in_cr = False

    def feed(self, part: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in this part.

        Raises:
            ValueError: an event is too long.
        """
        lines = self._with_line_feeds(part).split(b"\n")
        last = lines.pop()
        if lines:
            lines[0] = b"".join([*self._pending, lines[0]])
            self._pending, self._pending_bytes = [], 0
        for line in lines:
            if (event := self._line(line)) is not None:
                yield event
        if last:
            self._pending.append(last)
            self._pending_bytes += len(last)
        self._check(self._data_bytes + self._pending_bytes)

    def rest(self) -> Iterator[ServerEvent]:
        """Yield the last event, if it came without the empty line that ends it."""
        yield from self.feed(b"\n\n")

    def _with_line_feeds(self, part: bytes) -> bytes:
        """Return a part in which each of the three ends of lines is a line feed."""
        if self._ended_in_cr and part:
            part = part.removeprefix(b"\n")
            self._ended_in_cr = False
        if b"\r" not in part:
            return part
        self._ended_in_cr = part.endswith(b"\r")
        return part.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _line(self, line: bytes) -> ServerEvent | None:
        if self._is_first:
            line, self._is_first = line.removeprefix(_BYTE_ORDER_MARK), False
        if not line:
            event, data = self._event, self._data
            self._event, self._data, self._data_bytes = "", [], 0
            return ServerEvent(event, b"\n".join(data)) if data else None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
            self._check(self._data_bytes)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        return None

    def _check(self, size: int) -> None:
        if size > MOST_BYTES:
            raise ValueError("an event of the stream is longer than 16 MiB")


async def events(parts: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """Yield the events of a stream.

    Raises:
        ValueError: an event is too long.
    """
    reader = EventReader()
    async for part in parts:
        for event in reader.feed(part):
            yield event
    for event in reader.rest():
        yield event
