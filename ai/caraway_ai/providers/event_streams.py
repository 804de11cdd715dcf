"""Reads server-sent events from bytes as they arrive."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

MOST_BYTES = 16 * 1024 * 1024
"""Of one event."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; `event` is empty where the server named none."""

    event: str
    data: bytes


class EventReader:
    """Cuts a stream of bytes into events."""

    def __init__(self) -> None:
        self._pending = b""
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in this part.

        Raises:
            ValueError: an event is too long.
        """
        lines = (self._pending + part if self._pending else part).split(b"\n")
        self._pending = lines.pop()
        self._size += len(part)
        if self._size > MOST_BYTES:
            raise ValueError("an event of the stream is longer than 16 MiB")
        for line in lines:
            if (found := self._line(line.rstrip(b"\r"))) is not None:
                self._size = len(self._pending)
                yield found

    def rest(self) -> Iterator[ServerEvent]:
        """Yield the last event, if it came without the empty line that ends it."""
        yield from self.feed(b"\n\n")

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            event, data = self._event, self._data
            self._event, self._data = "", []
            return ServerEvent(event, b"\n".join(data)) if data else None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        return None


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
