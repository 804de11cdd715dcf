"""An engine process returns free memory once it has had no work for a while."""

import asyncio

from caraway_core.concurrency.tasks import Tasks
from caraway_executor.engines.resting import Resting
from caraway_executor.resources.memory_in_use import OwnMemory
from tests.kit.deadlines import until

LARGE = 200 * 1024 * 1024
CALM_S = 0.02


class Process(OwnMemory):
    """A process whose resident memory is set, and falls when memory is given back."""

    def __init__(self) -> None:
        self.resident = self.given = self.active = self.looks = self.measured = 0

    def give_back(self) -> None:
        self.given += 1
        self.resident = 0

    def measure_bytes(self) -> int:
        self.measured += 1
        return self.resident

    def __len__(self) -> int:
        """Count the work under way."""
        self.looks += 1
        return self.active


def resting(process: Process) -> Resting:
    return Resting(Tasks(), process, process, CALM_S)


async def test_memory_is_returned_after_work_once() -> None:
    process = Process()
    at_rest = resting(process)
    process.resident = LARGE
    for _ in range(3):
        at_rest.worked()
    # It is measured at first, before memory is returned, and afterwards.
    await asyncio.to_thread(until, lambda: process.measured == 3, "memory is returned")
    assert process.given == 1

    at_rest.worked()
    await asyncio.to_thread(until, lambda: process.measured == 4, "it is measured again")
    assert process.given == 1
    process.resident = LARGE
    at_rest.worked()
    await asyncio.to_thread(until, lambda: process.given == 2, "memory is returned again")


async def test_work_that_is_running_keeps_the_memory() -> None:
    process = Process()
    at_rest = resting(process)
    process.resident, process.active = LARGE, 1
    at_rest.worked()
    await asyncio.to_thread(until, lambda: process.looks > 3, "it was looked at while it works")
    assert process.given == 0
    process.active = 0
    await asyncio.to_thread(until, lambda: process.given == 1, "memory is returned")


async def test_little_memory_is_kept() -> None:
    process = Process()
    at_rest = resting(process)
    process.resident = 1024
    at_rest.worked()
    await asyncio.to_thread(until, lambda: process.measured == 2, "it is measured")
    await asyncio.sleep(0)
    assert process.given == 0
