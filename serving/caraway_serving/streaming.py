"""Streams rows with backpressure, and stops when the client disconnects."""

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Send

from caraway_core.concurrency import tasks
from caraway_serving import compression
from caraway_serving.codings import Coding
from caraway_serving.departures import DEPARTURE, Departure
from caraway_serving.formats import Encoder

_INLINE_ROWS = 1_024
"""Below this number of rows, encoding is faster than waking a thread."""
_SEND_BYTES = 64 * 1024
_COMPRESS_BYTES = 1_024
T = TypeVar("T")


def is_small(batches: list[pa.RecordBatch] | tuple[pa.RecordBatch, ...]) -> bool:
    """Return whether there are few enough rows to encode them without a thread."""
    rows: int = sum(batch.num_rows for batch in batches)
    return rows <= _INLINE_ROWS


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The media type and encoding of a response, and the counter of its bytes."""

    content_type: str
    coding: Coding
    count_bytes: Callable[[int], None]
    headers: Mapping[str, str] = field(default_factory=dict)


class BodySender:
    """Sends one response with status 200, whole or as a stream of rows."""

    def __init__(self, form: AnswerForm, send: Send) -> None:
        self._form = form
        self._send = send
        self._headers = dict(form.headers)
        self._compressor = compression.make("identity")

    async def whole(self, body: bytes) -> None:
        """Send the complete body."""
        coding = self._form.coding
        if coding != "identity" and len(body) > _COMPRESS_BYTES:
            compressor = compression.make(coding)
            body = compressor.compress(body) + compressor.flush()
            self._headers["content-encoding"] = coding
        self._headers["content-length"] = str(len(body))
        await self._start()
        await self._part(body, more=False)

    async def rows(
        self,
        encoder: Encoder,
        head: bytes,
        batches: AsyncIterable[pa.RecordBatch],
        elapsed_ms: Callable[[], int],
    ) -> None:
        """Send the encoder's start, and then the batches as they arrive.

        If the batches raise an error, the body stays incomplete and the server closes the
        connection. Clients thereby detect a truncated response.
        """
        if self._form.coding != "identity":
            self._compressor = compression.make(self._form.coding)
            self._headers["content-encoding"] = self._form.coding
        pending = bytearray(self._compressor.compress(head))
        await self._start()
        async for batch in batches:
            pending += await self._encoded(encoder, batch)
            if len(pending) >= _SEND_BYTES:
                await self._part(bytes(pending), more=True)
                pending.clear()
        pending += self._compressor.compress(encoder.end(elapsed_ms()))
        pending += self._compressor.flush()
        await self._part(bytes(pending), more=False)

    async def _encoded(self, encoder: Encoder, batch: pa.RecordBatch) -> bytes:
        def encode() -> bytes:
            return self._compressor.compress(encoder.encode(batch))

        return encode() if batch.num_rows <= _INLINE_ROWS else await asyncio.to_thread(encode)

    async def _start(self) -> None:
        headers = {"content-type": self._form.content_type, **self._headers}
        await self._send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(name.lower().encode(), v.encode()) for name, v in headers.items()],
            }
        )

    async def _part(self, body: bytes, more: bool) -> None:
        self._form.count_bytes(len(body))
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


async def disconnected(receive: Receive) -> None:
    """Return when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: Request, work: Coroutine[object, object, T]) -> T:
    """Wait for the work, and cancel it if the client disconnects.

    Raises:
        ClientDisconnect: the client disconnected first; the work was cancelled.
    """
    departure: Departure | None = request.scope.get(DEPARTURE)
    if departure is not None:
        return await departure.cut_short(work)
    start = tasks.begin(work)
    gone = tasks.begin(disconnected(request.receive))
    try:
        await asyncio.wait((start, gone), return_when=asyncio.FIRST_COMPLETED)
        if gone.done() and not start.done():
            raise ClientDisconnect
        return start.result()
    finally:
        gone.cancel()
        if not start.done():
            start.cancel()
            await asyncio.wait((start,))
