"""Exports of scans, which give out their files in pages while they run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ExecutorsLostError, outcomes
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.storing import StoredChunk, in_order
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace
from caraway_gateway.iceberg import exporting, plan_pages
from caraway_gateway.iceberg.exporting import ExportedFile, ExportedRows
from caraway_gateway.iceberg.histories import now_ms
from caraway_gateway.iceberg.plan_pages import PlanOwner, PlanPage
from caraway_plugins.iceberg import planned
from caraway_plugins.stores.published import Published
from caraway_serving import errors

logger = logging.getLogger(__name__)
FIRST_S = 0.8
"""Time that the first page waits for the end of the export."""
PAGE_S = 10.0
"""Time that a later page waits for a file. So other schedulers see that the export goes on."""
_GATHER_S = 0.3
KEPT_S = 600.0
"""Time that an export goes on although no client requests its pages."""


@dataclass(frozen=True, slots=True)
class ScanExport:
    """The rows of a scan that are exported: by which statement, to where, and for whom."""

    statement: Statement
    at: ResultPlace
    place: Published
    owner: PlanOwner


class ScanRun:
    """An export that runs. `written` is the number of its pages; the place has them."""

    def __init__(self, export: ScanExport, clock: SecondsClock) -> None:
        self.id = plan_pages.new_id()
        self.export = export
        self.written = 0
        self.first = PlanPage()
        self.failure: CarawayError | None = None
        self._clock = clock
        self._asked_s = clock()
        self._words: list[StoredChunk] = []
        self._given: set[str] = set()
        self._news = asyncio.Event()
        self._page = asyncio.Condition()

    def asked(self) -> None:
        """Note that a client asks for a page."""
        self._asked_s = self._clock()

    async def wait_for(self, number: int) -> None:
        """Wait until a page is written."""
        async with self._page:
            await self._page.wait_for(lambda: self.written > number)

    async def export_rows(self, dispatch: Dispatch, slots: asyncio.Semaphore) -> None:
        """Export the rows, and write the pages."""
        work = tasks.begin(self._exported(dispatch, slots), "export the rows of a scan")
        work.add_done_callback(lambda _work: self._news.set())
        try:
            while not (await self._next(work)).is_last and not await self._is_unwanted():
                pass
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def _exported(self, dispatch: Dispatch, slots: asyncio.Semaphore) -> ExportedRows:
        async with slots:
            return await exporting.export(
                dispatch,
                self.export.statement,
                self.export.at,
                plan_pages.home(self.id),
                on_word=self._heard,
            )

    def _heard(self, words: list[StoredChunk]) -> None:
        self._words = words
        self._news.set()

    async def _next(self, work: asyncio.Task[ExportedRows]) -> PlanPage:
        """Write the next page."""
        await self._until_news(work)
        try:
            page = self._made(work)
        except CarawayError as exc:
            self.failure = exc
            page = PlanPage(is_last=True, failure=(errors.status(exc), outcomes.words(exc)))
        place, number = self.export.place, self.written
        if number == 0:
            self.first = page
            await asyncio.to_thread(plan_pages.begin, place, self.id, self.export.owner)
        if number or not page.is_last:
            await asyncio.to_thread(plan_pages.write, place, self.id, number, page)
        async with self._page:
            self.written += 1
            self._page.notify_all()
        return page

    async def _until_news(self, work: asyncio.Task[ExportedRows]) -> None:
        """Wait for the end of the export, or for files and what comes soon after them."""
        if self.written == 0:
            await asyncio.wait([work], timeout=FIRST_S)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAGE_S):
                while not work.done() and not self._has_files():
                    self._news.clear()
                    await self._news.wait()
        if not work.done():
            await asyncio.wait([work], timeout=_GATHER_S)

    def _has_files(self) -> bool:
        return sum(each.is_chunk for each in self._words) > len(self._given)

    def _made(self, work: asyncio.Task[ExportedRows]) -> PlanPage:
        """Return a page of the files that were not given out yet.

        Raises:
            CarawayError: the export failed, or files that were given out do not count any more.
        """
        if work.done():
            files = work.result().files
        else:
            files = exporting.files(plan_pages.home(self.id), in_order(self._words))
        if not self._given <= {each.name for each in files}:
            raise ExecutorsLostError(
                "an executor was lost after files of the scan were given out; plan it again"
            )
        fresh = [each for each in files if each.name not in self._given]
        part = fresh[: self.export.owner.most_tasks]
        self._given.update(each.name for each in part)
        return PlanPage([self._task(each) for each in part], work.done() and part == fresh)

    def _task(self, file: ExportedFile) -> dict[str, object]:
        location = self.export.place.location(file.name)
        return planned.written(location, file.size_bytes, file.row_count)

    async def _is_unwanted(self) -> bool:
        """Return whether the plan was cancelled, or forgotten by its client."""
        place = self.export.place
        if await asyncio.to_thread(plan_pages.is_cancelled, place, self.id):
            return True
        if self._clock() - self._asked_s <= KEPT_S:
            return False
        if now_ms() - await asyncio.to_thread(plan_pages.asked_ms, place, self.id) <= KEPT_S * 1000:
            return False
        logger.info("a scan was planned and not fetched", extra={"plan": self.id})
        await asyncio.to_thread(plan_pages.cancel, place, self.id)
        return True
