"""Plans of scans: their answers, and the exports that run for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import NotFoundError, OverloadedError, UnavailableError
from caraway_core.protocols.dispatch import Dispatch
from caraway_gateway.iceberg import plan_pages
from caraway_gateway.iceberg.plan_pages import NoPlanTaskError, PlanOwner, PlanPage
from caraway_gateway.iceberg.scan_runs import PAGE_S, ScanExport, ScanRun
from caraway_plugins.stores.published import Published
from caraway_serving.errors import RefusedRequestError

_MOST_AT_ONCE = 4
_MOST_OPEN = 64
_MOST_OF_ONE = 16
_LOOK_S = 0.5
_SILENT_S = 3 * PAGE_S
Answer = dict[str, Any]


class ScanPlans:
    """The plans of scans. Exports run on the scheduler that was asked; any one has the pages."""

    def __init__(self, dispatch: Dispatch, clock: SecondsClock = time.monotonic) -> None:
        self._dispatch = dispatch
        self._clock = clock
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._running: dict[str, tuple[ScanRun, asyncio.Task[None]]] = {}
        self._tasks = tasks.Tasks()

    async def export(self, export: ScanExport, *, may_wait: bool) -> Answer:
        """Begin to export the rows of a scan, and return the files that exist after a second.

        With `may_wait`, the client asks again for a plan that is not complete; otherwise the
        answer names a task for the rest.

        Raises:
            OverloadedError: too many exports run.
            QueryError: the export failed.
        """
        self._check_room(export.owner.principal)
        run = ScanRun(export, self._clock)
        work = self._tasks.spawn(run.export_rows(self._dispatch, self._slots), "plan a scan")
        self._running[run.id] = run, work
        work.add_done_callback(lambda _work: self._running.pop(run.id, None))
        await _either(run.wait_for(0), work)
        if not run.written:
            raise UnavailableError("the scan cannot be planned now; try again")
        if run.failure is not None:
            raise run.failure
        page = run.first
        if may_wait and not page.is_last:
            return {"status": "submitted", "plan-id": run.id}
        return _completed(run.id, 0, page, export.owner)

    async def listed(
        self, found: Sequence[dict[str, Any]], place: Published, owner: PlanOwner
    ) -> Answer:
        """Answer with files of a table, in pages if there are many."""
        plan_id = plan_pages.new_id()
        page = PlanPage(found[: owner.most_tasks], len(found) <= owner.most_tasks)
        if not page.is_last:
            await asyncio.to_thread(plan_pages.begin, place, plan_id, owner)
        return _completed(plan_id, 0, page, owner)

    async def look(self, place: Published, plan_id: str, principal: str, table: str) -> Answer:
        """Return the state of a plan, with all files that are there so far.

        Raises:
            NoPlanError: there is no such plan.
        """
        owner = await asyncio.to_thread(plan_pages.owner, place, plan_id, principal, table)
        if await asyncio.to_thread(plan_pages.is_cancelled, place, plan_id):
            return {"status": "cancelled"}
        await self._asked(place, plan_id, owner)
        found: list[dict[str, Any]] = []
        number, page = 0, None
        while len(found) < owner.most_tasks and (page is None or not page.is_last):
            following = await asyncio.to_thread(plan_pages.read, place, plan_id, number, owner)
            if following is None:
                break
            number, page = number + 1, following
            if page.failure is not None:
                code, message = page.failure
                return {"status": "failed", "error": {"message": message, "code": code}}
            found.extend(page.tasks)
        if page is None or not (found or page.is_last):
            return {"status": "submitted", "plan-id": plan_id}
        return _completed(plan_id, number - 1, PlanPage(found, page.is_last), owner)

    async def fetch(self, place: Published, token: object, principal: str, table: str) -> Answer:
        """Return the files of a page of a plan, once it is there.

        Raises:
            NoPlanTaskError: there is no such page.
            UnavailableError: its scheduler is gone.
        """
        plan_id, number = plan_pages.parsed(token)
        try:
            owner = await asyncio.to_thread(plan_pages.owner, place, plan_id, principal, table)
        except NotFoundError as exc:
            raise NoPlanTaskError(exc.message) from exc
        await self._asked(place, plan_id, owner)
        page = _checked(await self._page(place, plan_id, number, owner))
        following = [] if page.is_last else [plan_pages.token(plan_id, number + 1)]
        return {**_tasks(page.tasks, owner), "plan-tasks": following}

    async def cancel(self, place: Published, plan_id: str, principal: str, table: str) -> None:
        """Stop the export of a plan. Files that were given out stay for a while.

        Raises:
            NoPlanError: there is no such plan.
        """
        await asyncio.to_thread(plan_pages.owner, place, plan_id, principal, table)
        await asyncio.to_thread(plan_pages.cancel, place, plan_id)
        if plan_id in self._running:
            self._running[plan_id][1].cancel()

    async def aclose(self) -> None:
        """Stop the exports."""
        await self._tasks.aclose()

    async def _page(
        self, place: Published, plan_id: str, number: int, owner: PlanOwner
    ) -> PlanPage:
        until_s = self._clock() + _SILENT_S
        while True:
            running = self._running.get(plan_id)
            page = await asyncio.to_thread(plan_pages.read, place, plan_id, number, owner)
            if page is not None:
                return page
            await asyncio.to_thread(plan_pages.check_follows, place, plan_id, number, owner)
            if running is not None:
                run, work = running
                await _either(run.wait_for(number), work)
            elif self._clock() > until_s:
                raise UnavailableError("the scheduler that planned the scan is gone; plan it again")
            else:
                await asyncio.sleep(_LOOK_S)

    async def _asked(self, place: Published, plan_id: str, owner: PlanOwner) -> None:
        if plan_id in self._running:
            self._running[plan_id][0].asked()
        elif not owner.tasks:
            await asyncio.to_thread(plan_pages.ask, place, plan_id)

    def _check_room(self, principal: str) -> None:
        own = sum(run.export.owner.principal == principal for run, _ in self._running.values())
        if own >= _MOST_OF_ONE or len(self._running) >= _MOST_OPEN:
            raise OverloadedError(
                f"{own} scans of this key are being planned; at most {_MOST_OF_ONE} are at once",
                retry_after_s=1,
            )


def _checked(page: PlanPage) -> PlanPage:
    if page.failure is not None:
        raise RefusedRequestError(*page.failure)
    return page


def _completed(plan_id: str, number: int, page: PlanPage, owner: PlanOwner) -> Answer:
    answer = {"status": "completed", **_tasks(page.tasks, owner)}
    if page.is_last:
        return answer
    return {**answer, "plan-id": plan_id, "plan-tasks": [plan_pages.token(plan_id, number + 1)]}


def _tasks(found: Sequence[Mapping[str, object]], owner: PlanOwner) -> Answer:
    rest = {} if owner.filter is None else {"residual-filter": owner.filter}
    return {"file-scan-tasks": [{**each, **rest} for each in found], "delete-files": []}


async def _either(work: Coroutine[object, object, None], other: asyncio.Task[None]) -> None:
    """Wait for the end of some work, or of a task that may make it wait forever."""
    waiting = tasks.begin(work, "wait for a page")
    try:
        await asyncio.wait([waiting, other], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
