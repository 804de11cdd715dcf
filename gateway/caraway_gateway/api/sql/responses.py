"""Sends the answer of a statement: at once if it is small, otherwise as it is computed."""

import logging
import time
from collections.abc import Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_scheduler.queries.answers import CachedRows, LiveRows, StatementAnswer
from caraway_serving import formats, streaming
from caraway_serving.codings import Coding
from caraway_serving.negotiation import Choice
from caraway_serving.streaming import AnswerForm, BodySender

logger = logging.getLogger(__name__)


class AnswerResponse(Response):
    """A response that sends an answer itself, unlike its base class.

    After the first byte, an error can only be signalled by aborting the connection.
    """

    def __init__(
        self,
        answer: StatementAnswer,
        choice: Choice,
        coding: Coding,
        headers: Mapping[str, str],
        count_bytes: Callable[[int], None],
        started: float,
        encoder: formats.Encoder | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._answer = answer
        self._format = choice.format
        self._form = AnswerForm(choice.content_type, coding, count_bytes, headers)
        self._encoder = formats.make(choice.format) if encoder is None else encoder
        self._started = started

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rows = self._answer.rows
        body = BodySender(self._form, send)
        try:
            whole = rows.batches if isinstance(rows, CachedRows) else rows.whole
            if whole is not None and streaming.is_small(whole):
                await body.whole(await self._whole(rows))
            else:
                await self._stream(rows, body, receive)
        finally:
            rows.close()

    async def _whole(self, rows: LiveRows | CachedRows) -> bytes:
        memo = isinstance(rows, CachedRows) and self._format != "versioned"
        if memo and isinstance(rows, CachedRows):
            if (body := rows.encoded(self._format)) is not None:
                return body
        parts = [self._encoder.encode_start(rows.schema)]
        parts += [self._encoder.encode(batch) async for batch in rows]
        parts.append(self._encoder.end(self._elapsed_ms()))
        body = b"".join(parts)
        if memo and isinstance(rows, CachedRows):
            rows.remember(self._format, body)
        return body

    async def _stream(
        self, rows: LiveRows | CachedRows, body: BodySender, receive: Receive
    ) -> None:
        gone = tasks.begin(streaming.disconnected(receive))
        if isinstance(rows, LiveRows):
            gone.add_done_callback(lambda _: rows.stop())
        try:
            head = self._encoder.encode_start(rows.schema)
            await body.rows(self._encoder, head, rows, self._elapsed_ms)
        except CarawayError as exc:
            if not gone.done():
                logger.warning(
                    "answer aborted",
                    extra={"query_id": self._answer.query_id, "reason": exc.message},
                )
        finally:
            gone.cancel()

    def _elapsed_ms(self) -> int:
        return int((time.perf_counter() - self._started) * 1000)
