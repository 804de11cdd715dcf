"""Reads answers that executors hold open, page by page: rows, and the parts of a model's answer."""

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import ExecutorLostError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols import wire
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.protocols.hosting import AnswerParts
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer, send

Page = Coroutine[Any, Any, AnswerParts]


class AnswerPages(Protocol):
    """The pages of answers that an executor holds open."""

    async def fetch_page(self, cursor: str) -> AnswerPage:
        """Return the next page of an answer."""
        ...

    async def close_answer(self, cursor: str) -> None:
        """Close an answer that is not read to its end."""
        ...


class PagedStream:
    """A stream over the pages of an answer; it fetches at most one page ahead."""

    def __init__(self, first: AnswerPage, pages: AnswerPages) -> None:
        assert first.schema is not None
        self.schema: pa.Schema = first.schema
        self.reads_only_catalog: bool = first.reads_only_catalog
        self.written: TableName | None = first.written
        self._pages = pages
        self._cursor = None if first.is_last else first.cursor
        self._batches = deque(first.batches)
        self._coming: asyncio.Future[AnswerPage] | None = None
        self.traits = StreamTraits()
        self._note_profile(first)

    @property
    def is_at_end(self) -> bool:
        """True if all pages were read."""
        return not self._batches and self._coming is None and self._cursor is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        self._ask()
        while not self._batches:
            if self._coming is None:
                raise StopAsyncIteration
            await self._turn()
        return self._batches.popleft()

    async def aclose(self) -> None:
        """Close the answer and its cursor on the executor."""
        self._batches.clear()
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            await self._pages.close_answer(cursor)

    def _ask(self) -> None:
        if self._coming is None and self._cursor is not None:
            self._coming = tasks.begin(self._pages.fetch_page(self._cursor))

    async def _turn(self) -> None:
        assert self._coming is not None
        try:
            page = await self._coming
        except asyncio.CancelledError:
            await self.aclose()
            raise
        except BaseException:
            # The executor closes a cursor that failed.
            self._coming = self._cursor = None
            raise
        self._coming = None
        self._batches.extend(page.batches)
        if page.is_last:
            self._cursor = None
        self._note_profile(page)
        self._ask()

    def _note_profile(self, page: AnswerPage) -> None:
        if (profile := page.profile) is not None:
            self.traits.profile = lambda: profile


@dataclass(frozen=True, slots=True)
class PeerPages:
    """The pages of one call, while its executor is in the cluster."""

    peers: Mapping[ExecutorId, Peer]
    answers: Answers
    peer: Peer
    call: str

    async def fetch_page(self, cursor: str) -> AnswerPage:
        """Return the next page of an answer.

        Raises:
            ExecutorLostError: the executor has left, or is another process now.
        """
        if self.peers.get(self.peer.executor_id) is not self.peer:
            raise ExecutorLostError(self.peer.executor_id, NO_ANSWER)
        ask_copy = self.peer.actor.next.remote(cursor)
        return wire.unpack(await self.answers.work(self.peer, self.call, ask_copy))

    async def close_answer(self, cursor: str) -> None:
        """Close an answer that is not read to its end."""
        if self.peers.get(self.peer.executor_id) is self.peer:
            send(self.peer.actor.close, cursor)


async def copy_parts(
    first: Callable[[], Page],
    following: Callable[[], Page],
    end: Callable[[], Coroutine[object, object, None]],
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of an answer; the next page is asked for while one is read.

    `end` ends the call on its executor, where the generator is closed before its end.
    """
    coming: asyncio.Task[AnswerParts] | None = tasks.begin(first())
    is_over = False
    try:
        while coming is not None:
            try:
                page = await coming
            except BaseException as exc:
                # The executor ends a call that failed.
                is_over = not tasks.ends(exc)
                raise
            coming = None if page.is_last else tasks.begin(following())
            for part in page.parts:
                yield part
        is_over = True
    finally:
        if coming is not None:
            coming.cancel()
        if not is_over:
            await end()


def ask_copy(
    answered: Callable[[object], Page], actor: Any, key: str, request: bytes
) -> AsyncGenerator[bytes, None]:
    """Call a copy of a model on the actor of an executor.

    `answered` waits for what a method returns.
    """
    call = uuid.uuid4().hex

    async def end() -> None:
        send(actor.end_ask, call)

    return copy_parts(
        lambda: answered(actor.ask.remote(call, key, request)),
        lambda: answered(actor.next_parts.remote(call)),
        end,
    )
