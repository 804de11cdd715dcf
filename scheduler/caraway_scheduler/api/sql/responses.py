"""Sends an answer: whole where it is small, else as it comes, no faster than the client reads."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

import pyarrow as pa
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from caraway_core.errors import CarawayError
from caraway_engine import formats
from caraway_scheduler.api.negotiation import Choice, Coding
from caraway_scheduler.api.sql import compression
from caraway_scheduler.queries.answers import Answer, CachedRows, LiveRows

logger = logging.getLogger(__name__)
_INLINE_ROWS = 1_024
"""Fewer rows than these are encoded faster than a thread is woken."""
_SEND_BYTES = 64 * 1024
_COMPRESS_BYTES = 1_024


class AnswerResponse(Response):
    """Sends itself; nothing of its base is used.

    After the first byte a failure can only be told by breaking the connection off.
    """

    def __init__(
        self,
        answer: Answer,
        choice: Choice,
        coding: Coding,
        headers: Mapping[str, str],
        count_bytes: Callable[[int], None],
        started: float,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._answer = answer
        self._choice = choice
        self._coding = coding
        self._extra = dict(headers)
        self._count_bytes = count_bytes
        self._encoder = formats.make(choice.format)
        self._compressor = compression.make("identity")
        self._started = started

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rows = self._answer.rows
        try:
            whole = rows.batches if isinstance(rows, CachedRows) else rows.whole
            if whole is not None and sum(batch.num_rows for batch in whole) <= _INLINE_ROWS:
                await self._send_whole(send, await self._whole(rows))
            else:
                await self._stream(rows, receive, send)
        finally:
            rows.close()

    async def _whole(self, rows: LiveRows | CachedRows) -> bytes:
        form = self._choice.format
        memo = isinstance(rows, CachedRows) and form != "versioned"
        if memo and isinstance(rows, CachedRows) and (body := rows.encoded(form)) is not None:
            return body
        parts = [self._encoder.begin(rows.schema)]
        parts += [self._encoder.encode(batch) async for batch in rows]
        parts.append(self._encoder.end(self._elapsed_ms()))
        body = b"".join(parts)
        if memo and isinstance(rows, CachedRows):
            rows.remember(form, body)
        return body

    async def _send_whole(self, send: Send, body: bytes) -> None:
        if self._coding != "identity" and len(body) > _COMPRESS_BYTES:
            compressor = compression.make(self._coding)
            body = compressor.compress(body) + compressor.flush()
            self._extra["content-encoding"] = self._coding
        self._extra["content-length"] = str(len(body))
        self._count_bytes(len(body))
        await send(self._start())
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, rows: LiveRows | CachedRows, receive: Receive, send: Send) -> None:
        if self._coding != "identity":
            self._compressor = compression.make(self._coding)
            self._extra["content-encoding"] = self._coding
        gone = asyncio.ensure_future(_disconnected(receive))
        if isinstance(rows, LiveRows):
            gone.add_done_callback(lambda _: rows.stop())
        try:
            await send(self._start())
            await self._send_rows(rows, send)
        except CarawayError as exc:
            # Returning before the body is complete makes the server break the connection off,
            # which is how a client tells a cut answer from a whole one.
            if not gone.done():
                logger.warning(
                    "answer broken off",
                    extra={"query_id": self._answer.query_id, "reason": exc.message},
                )
        finally:
            gone.cancel()

    async def _send_rows(self, rows: LiveRows | CachedRows, send: Send) -> None:
        pending = bytearray(self._compressor.compress(self._encoder.begin(rows.schema)))
        async for batch in rows:
            pending += await self._encoded(batch)
            if len(pending) >= _SEND_BYTES:
                await self._send_part(send, bytes(pending), more=True)
                pending.clear()
        pending += self._compressor.compress(self._encoder.end(self._elapsed_ms()))
        pending += self._compressor.flush()
        await self._send_part(send, bytes(pending), more=False)

    async def _encoded(self, batch: pa.RecordBatch) -> bytes:
        if batch.num_rows <= _INLINE_ROWS:
            return self._encode(batch)
        return await asyncio.to_thread(self._encode, batch)

    def _encode(self, batch: pa.RecordBatch) -> bytes:
        return self._compressor.compress(self._encoder.encode(batch))

    async def _send_part(self, send: Send, body: bytes, more: bool) -> None:
        self._count_bytes(len(body))
        await send({"type": "http.response.body", "body": body, "more_body": more})

    def _start(self) -> dict[str, object]:
        headers = {"content-type": self._choice.content_type, **self._extra}
        return {
            "type": "http.response.start",
            "status": 200,
            "headers": [(name.lower().encode(), v.encode()) for name, v in headers.items()],
        }

    def _elapsed_ms(self) -> int:
        return int((time.perf_counter() - self._started) * 1000)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
