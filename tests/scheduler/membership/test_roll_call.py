"""The driver of membership: rounds, concurrent steps, and a scheduler that stood still."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from caraway_core.errors import CarawayError
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import TableCatalog
from caraway_scheduler.membership import state
from caraway_scheduler.membership.events import CatalogServed, CatalogWanted
from caraway_scheduler.membership.roll_call import PREPARE_S, RollCall, RollListener
from tests.kit.fleets import FakeFleet
from tests.kit.interleaving import SteppedLoop, run

CATALOG = TableCatalog(CatalogVersion(1), "here", {})
Failed = list[tuple[CatalogVersion, Mapping[TableName, str]]]


class Site(RollListener):
    """A roll call over a fake fleet, on a loop whose time a test moves."""

    def __init__(
        self,
        loop: SteppedLoop,
        *names: str,
        prepare: Callable[[ExecutorId], Awaitable[None]] | None = None,
    ) -> None:
        self.loop = loop
        self.fleet = FakeFleet(*names)
        self.changes = 0
        self.failed: Failed = []
        self.breaks = False
        self.call = RollCall(
            self.fleet,
            "1.0",
            loop.time,
        )
        if prepare is not None:
            self.prepare = prepare  # type: ignore[method-assign, assignment]
        self.task = asyncio.create_task(self.call.run(self))

    def tables_failed(self, version: CatalogVersion, failures: Mapping[TableName, str]) -> None:
        self.failed.append((version, failures))

    def executors_changed(self) -> None:
        self.changes += 1
        if self.breaks:
            raise KeyError("a defect of a listener")

    async def wants(self, catalog: TableCatalog = CATALOG) -> None:
        self.call.catalog = catalog
        now = self.loop.time()
        self.call.post(CatalogWanted(catalog.origin, catalog.version, now))
        self.call.post(CatalogServed(catalog.version, frozenset(), now))

    @property
    def states(self) -> dict[str, str]:
        return {str(name): record.state for name, record in self.call.roll.records.items()}

    async def after(self, seconds: float) -> dict[str, str]:
        await asyncio.sleep(seconds)
        return self.states


def play(work: Callable[[SteppedLoop], Coroutine[Any, Any, None]]) -> None:
    run(work, lambda _: 0, steps_take_time=False)


def test_executors_are_asked_each_second_installed_probed_and_ready() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a", "b")
        await site.wants()
        assert await site.after(5) == {"a": "ready", "b": "ready"}
        assert 4 <= site.fleet.rounds <= 7
        assert (site.fleet["a"].installs, site.fleet["a"].probes) == (1, 1)

    play(work)


def test_executor_that_hangs_does_not_delay_the_others() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a", "b")
        site.fleet["a"].hang()
        await site.wants()
        assert (await site.after(3))["b"] == "ready"
        assert site.states["a"] == "registered"
        await asyncio.sleep(70)
        record = site.call.roll.records[ExecutorId("a")]
        assert "no answer" in record.error and site.states["b"] == "ready"
        site.fleet["a"].hangs.set()
        assert (await site.after(120))["a"] == "ready"

    play(work)


def test_silent_executor_is_lost_and_its_calls_are_given_up() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a", "b")
        await site.wants()
        await asyncio.sleep(5)
        site.fleet["a"].is_silent = True
        assert (await site.after(60)).get("a") in ("lost", None)
        assert site.fleet.given_up[0] == "a" and "b" not in site.fleet.given_up

    play(work)


def test_fleet_that_cannot_be_asked_is_asked_again() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        await site.wants()
        for raised in (CarawayError("no answer"), KeyError("x"), asyncio.CancelledError()):
            site.fleet.error = raised  # type: ignore[assignment]
            await asyncio.sleep(2)
            assert not site.task.done()
        site.fleet.error = None
        assert (await site.after(30))["a"] == "ready"

    play(work)


def test_scheduler_that_stood_still_asks_once_more_before_it_takes_all_for_lost() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        await site.wants()
        await asyncio.sleep(5)
        describe = site.fleet.describe

        async def late(*asked: Any) -> Any:
            loop._now += 3_600  # As if the process had been stopped for an hour.
            site.fleet.describe = describe  # type: ignore[method-assign]
            return []

        site.fleet.describe = late  # type: ignore[method-assign,assignment]
        assert (await site.after(3))["a"] == "ready"
        assert site.fleet.given_up == []

    play(work)


def test_defect_of_a_listener_does_not_end_the_roll_call() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        site.breaks = True
        await site.wants()
        assert (await site.after(5))["a"] == "ready"
        assert site.changes > 0 and not site.task.done()

    play(work)


def test_listener_is_told_of_changes_only() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        await site.wants()
        await asyncio.sleep(5)
        told = site.changes
        for used in range(20):
            site.fleet["a"].change(memory_used_bytes=used, active_tasks=used)
            await asyncio.sleep(1)
        assert site.changes == told
        site.fleet["a"].restart()
        await asyncio.sleep(5)
        assert site.changes > told

    play(work)


def test_probe_that_fails_keeps_an_executor_from_work_and_is_tried_again() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        site.fleet["a"].probe_error = CarawayError("its disk is gone")
        await site.wants()
        assert (await site.after(5))["a"] == "registered"
        record = site.call.roll.records[ExecutorId("a")]
        assert "disk" in state.status(site.call.roll, record, loop.time()).reason
        site.fleet["a"].probe_error = None
        assert (await site.after(60))["a"] == "ready"

    play(work)


def test_newcomer_loads_its_rows_first_but_not_for_ever() -> None:
    async def work(loop: SteppedLoop) -> None:
        asked: list[ExecutorId] = []

        async def prepare(executor_id: ExecutorId) -> None:
            asked.append(executor_id)
            await asyncio.Event().wait()

        site = Site(loop, "a", prepare=prepare)
        await site.wants()
        assert (await site.after(5))["a"] == "ready", "nobody else can work: it is needed now"
        assert asked == []
        site.fleet.executors["b"] = FakeFleet("b")["b"]
        assert (await site.after(5))["b"] == "registered" and asked == ["b"]
        assert (await site.after(PREPARE_S + 5))["b"] == "ready"

    play(work)


def test_ending_the_roll_call_ends_its_steps() -> None:
    async def work(loop: SteppedLoop) -> None:
        site = Site(loop, "a")
        site.fleet["a"].hang()
        await site.wants()
        await asyncio.sleep(2)
        site.task.cancel()
        await asyncio.wait((site.task,))
        assert site.task.cancelled()
        assert all(step.done() for step in site.call._steps.values())

    play(work)
