"""Reads an answer that an executor holds open, page by page."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.protocols.fleet import AnswerPage


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
