"""Sends change events to a dataset in batches and retries each batch until it is applied."""

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from caraway.errors import BrokenResponseError
from caraway.requests import parsing, retries
from caraway.requests.transport import ApiRequest, Transport

BATCH_EVENTS = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""Maximum size of a batch, which may therefore hold fewer events than requested."""
_NDJSON = "application/x-ndjson"
# The server gives up after a minute and returns an error; wait for that error.
_TIMEOUT_S = 75.0

Event = Mapping[str, Any] | str | bytes | None
"""An event as a mapping or as JSON text. None is a tombstone."""


@dataclass(frozen=True, slots=True)
class IngestApi:
    """The routes that ingest change events."""

    transport: Transport
    new_key: Callable[[], str] = lambda: str(uuid4())

    def send_events(
        self, name: str, events: Iterable[Event], batch_events: int = BATCH_EVENTS
    ) -> Generator[int, None, None]:
        """Send events in order; yield the number applied after each batch."""
        for lines in split_batches(map(encode_event, events), batch_events):
            yield self._send_batch(name, b"\n".join(lines))

    def _send_batch(self, name: str, body: bytes) -> int:
        request = ApiRequest(
            "POST",
            f"/v1/datasets/{quote(name, safe='')}/cdc",
            accept="application/json",
            body=body,
            content_type=_NDJSON,
            timeout_s=_TIMEOUT_S,
            # The server recognises a retry by this key and does not apply the batch twice.
            extra={"Idempotency-Key": self.new_key()},
        )
        answer = parsing.parse_object(
            self.transport.text(request, retries.submissions(self.transport.max_retries))
        )
        applied = answer.get("applied")
        if not isinstance(applied, int):
            raise BrokenResponseError(
                f"the response does not say how many events were applied: {answer!r:.200}"
            )
        return applied


def encode_event(event: Event) -> bytes:
    """Encode an event as one line of JSON."""
    if event is None:
        return b"null"
    if isinstance(event, bytes):
        return _one_line(event)
    if isinstance(event, str):
        return _one_line(event.encode())
    # Dates and decimals are sent as strings, which the server casts to the column's type.
    return json.dumps(dict(event), default=str).encode()


def split_batches(lines: Iterable[bytes], max_events: int) -> Generator[list[bytes], None, None]:
    """Group lines into batches, skipping empty lines."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if not line:
            continue
        if batch and (len(batch) >= max_events or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line) + 1
    if batch:
        yield batch


def _one_line(text: bytes) -> bytes:
    # JSON strings cannot contain a raw line break, so these are whitespace between tokens.
    return text.strip().replace(b"\r", b" ").replace(b"\n", b" ")
