"""Sends stored rows, and aborts the connection if they turn out to be damaged."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pyarrow as pa
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.ids import JobId
from caraway_gateway.api.queries.answers import ChunkRows
from caraway_serving import streaming
from caraway_serving.formats import Encoder
from caraway_serving.streaming import AnswerForm, BodySender

logger = logging.getLogger(__name__)


class StoredResponse(Response):
    """A response that sends rows itself, unlike its base. `head` is the encoder's beginning."""

    def __init__(
        self, job_id: JobId, reading: ChunkRows, encoder: Encoder, head: bytes, form: AnswerForm
    ) -> None:
        self.status_code = 200
        self.background = None
        self._job_id = job_id
        self._reading = reading
        self._encoder = encoder
        self._head = head
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = tasks.begin(streaming.disconnected(receive))
        rows = _unless_gone(self._reading, gone)
        try:
            await BodySender(self._form, send).rows(self._encoder, self._head, rows, lambda: 0)
        except ClientDisconnect:
            pass
        except CarawayError as exc:
            logger.warning("answer aborted", extra={"job_id": self._job_id, "reason": exc.message})
        finally:
            gone.cancel()
            await self._reading.aclose()


async def _unless_gone(
    reading: ChunkRows, gone: asyncio.Future[None]
) -> AsyncIterator[pa.RecordBatch]:
    async for batch in reading:
        if gone.done():
            raise ClientDisconnect
        yield batch
