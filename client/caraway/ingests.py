"""Change events on their way to a dataset: cut into requests, each sent until it is applied."""

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from caraway import parsing, retries
from caraway.errors import BrokenAnswerError
from caraway.transport import Request, Transport

BATCH_EVENTS = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""A request is sent once it holds so much, though it may have fewer events."""
_NDJSON = "application/x-ndjson"
# The server gives up after a minute, and says so.
_TIMEOUT_S = 75.0

Event = Mapping[str, Any] | str | bytes | None
"""An event as a mapping, or already as JSON; None is a tombstone."""


@dataclass(frozen=True, slots=True)
class Ingests:
    """What a client sends to the datasets that take changes."""

    transport: Transport
    max_retries: int
    new_key: Callable[[], str] = lambda: str(uuid4())

    def send(
        self, name: str, events: Iterable[Event], batch_events: int = BATCH_EVENTS
    ) -> Generator[int, None, None]:
        """Send events in order; yield how many of each request are applied, once they are."""
        for lines in batches(map(line, events), batch_events):
            yield self._send(name, b"\n".join(lines))

    def _send(self, name: str, body: bytes) -> int:
        request = Request(
            "POST",
            f"/v1/datasets/{quote(name, safe='')}/cdc",
            accept="application/json",
            body=body,
            content_type=_NDJSON,
            timeout_s=_TIMEOUT_S,
            # By this key the server knows them again when they come twice.
            extra={"Idempotency-Key": self.new_key()},
        )
        answer = parsing.row(self.transport.text(request, retries.submissions(self.max_retries)))
        applied = answer.get("applied")
        if not isinstance(applied, int):
            raise BrokenAnswerError(f"the server does not say what it applied: {answer!r:.200}")
        return applied


def line(event: Event) -> bytes:
    """Return an event as one line of JSON."""
    if event is None:
        return b"null"
    if isinstance(event, bytes):
        return _one_line(event)
    if isinstance(event, str):
        return _one_line(event.encode())
    # Dates and decimals travel as text, which the server reads as the column is declared.
    return json.dumps(dict(event), default=str).encode()


def batches(lines: Iterable[bytes], most: int) -> Generator[list[bytes], None, None]:
    """Cut lines into requests; empty ones are left out."""
    waiting: list[bytes] = []
    size = 0
    for each in lines:
        if not each:
            continue
        if waiting and (len(waiting) >= most or size + len(each) > BATCH_BYTES):
            yield waiting
            waiting, size = [], 0
        waiting.append(each)
        size += len(each) + 1
    if waiting:
        yield waiting


def _one_line(text: bytes) -> bytes:
    """A line end in JSON is only between its tokens, so it may as well be a blank."""
    return text.strip().replace(b"\r", b" ").replace(b"\n", b" ")
