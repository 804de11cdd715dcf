"""A catalog that ends every engine is tried again rarely."""

from typing import Any

import pytest

from caraway_core.errors import UnavailableError
from caraway_core.statements import CatalogSnapshot
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines.causes import Cause, EngineLostError
from caraway_executor.engines.kept_rows import KeptRows
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.seats import Seat
from tests.kit.clocks import Clock
from tests.kit.engine import memory, snapshot

OPTIONS = EngineOptions(EngineSettings(1, 64 * 1024 * 1024), None, "main")


class DyingProcess:
    """Ends when it receives a catalog, unless the catalog is harmless."""

    def __init__(self, harmless: list[CatalogSnapshot]) -> None:
        self._harmless = harmless
        self.is_alive = True
        self.installed: Any = None
        self.prepared: Any = None
        self.registering = None

    async def give(self, _method: str, catalog: CatalogSnapshot) -> tuple[Any, Any]:
        if not any(catalog.version == each.version for each in self._harmless):
            raise EngineLostError(Cause.CRASH)
        return {}, {}


class SeatBench:
    def __init__(self) -> None:
        self.clock = Clock(100.0)
        self.harmless: list[CatalogSnapshot] = []
        self.forks = 0
        self.seat = Seat("main", self._fork, OPTIONS, KeptRows(), clock=self.clock)

    async def _fork(self, _options: EngineOptions) -> Any:
        self.forks += 1
        return DyingProcess(self.harmless)

    async def forks_of(self, statements: int) -> int:
        """Return how many processes a number of failing statements start."""
        before = self.forks
        for _ in range(statements):
            with pytest.raises(UnavailableError, match="whenever it loads the catalog"):
                await self.seat.ready()
        return self.forks - before


@pytest.fixture
def bench() -> SeatBench:
    made = SeatBench()
    made.seat.note(snapshot({"t": memory(n=[1])}))
    return made


async def test_a_catalog_that_ends_each_engine_is_tried_again_ever_later(bench: SeatBench) -> None:
    once = await bench.forks_of(1)
    assert await bench.forks_of(20) == once, "at once again, then no more"
    for _ in range(10):
        bench.clock.now += 36
        assert await bench.forks_of(20) == once


async def test_a_new_catalog_is_tried_at_once(bench: SeatBench) -> None:
    await bench.forks_of(5)
    new = snapshot({"t": memory(n=[1])}, version=2)
    bench.harmless.append(new)
    assert await bench.seat.install(new) == {}
    assert (await bench.seat.ready()).is_alive


async def test_an_engine_that_takes_its_catalog_again_is_used(bench: SeatBench) -> None:
    await bench.forks_of(5)
    assert bench.seat._catalog is not None
    bench.harmless.append(bench.seat._catalog)
    bench.clock.now += 1
    assert (await bench.seat.ready()).is_alive
