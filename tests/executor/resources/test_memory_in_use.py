"""An executor reports the memory of its data and statements, and gives back what neither uses."""

import mmap
import os
import threading

import pytest

from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_executor.resources import usage
from caraway_executor.resources.freeing import CALM_S
from caraway_executor.resources.memory_in_use import MemoryInUse, OwnMemory
from caraway_executor.resources.room import TaskMemory
from tests.kit.deadlines import eventually
from tests.kit.engine import memory
from tests.kit.workers import worker


class Process(OwnMemory):
    """A process whose resident memory is set, and falls when memory is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.resident = 100
        self.given = 0

    def measure_bytes(self) -> int:
        return self.resident

    def look_at_pages(self) -> None:
        pass

    def give_back(self) -> None:
        self.given += 1
        self.resident -= 20


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


async def test_memory_that_is_kept_for_later_is_not_in_use() -> None:
    process, room, time = Process(), TaskMemory(1000), Time()
    measured = MemoryInUse(room, process, time, worth_bytes=0)
    assert await measured.measure(0) == 0
    process.resident = 400
    assert await measured.measure(1) == 300
    room.take_bytes(50)
    time.now_s += CALM_S - 1
    # Schedulers and the executor itself ask, as often as they like.
    assert [await measured.measure(0) for _ in range(100)] == [50] * 100
    assert process.given == 0
    time.now_s += 1
    assert await measured.measure(0) == 50
    assert process.given == 1 and process.resident == 380
    # Each end of work gives back once.
    time.now_s += CALM_S
    assert await measured.measure(0) == 50
    assert process.given == 1
    process.resident = 390
    assert await measured.measure(2) == 60


async def test_work_between_heartbeats_is_work() -> None:
    process, time = Process(), Time()
    measured = MemoryInUse(TaskMemory(None), process, time, worth_bytes=0)
    for ended in (1, 2, 2):
        assert await measured.measure(0, ended) == 0
        time.now_s += CALM_S - 1
    assert process.given == 0
    await measured.measure(0, 2)
    assert process.given == 1


async def test_little_growth_since_the_last_time_returns_nothing() -> None:
    process, time = Process(), Time()
    measured = MemoryInUse(TaskMemory(None), process, time, worth_bytes=100)
    for resident, given in ((100, 1), (179, 1), (180, 2), (160, 2), (259, 2), (260, 3)):
        process.resident = resident
        await measured.measure(1)
        time.now_s += CALM_S
        await measured.measure(0)
        assert process.given == given


async def test_an_executor_that_is_never_idle_does_not_count_what_was_offered() -> None:
    memory = OwnMemory()
    # Engines of other tests may have offered pages of this process.
    memory.look_at_pages()
    measured = MemoryInUse(TaskMemory(None), memory)
    assert await measured.measure(0) == 0
    size = 64 << 20
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        pages.write(b"x" * size)
        assert await measured.measure(1) > 3 * size // 4
        pages.madvise(mmap.MADV_FREE)
        # The pages are still resident, but the system may take them.
        assert usage.anonymous_bytes(os.getpid()) > size

        async def falls() -> bool:
            return await measured.measure(1) < size // 4

        assert await eventually(falls, "the next look finds them")


async def test_pages_are_looked_at_in_little_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    times, processor_times = iter([0.0, 0.0, 49.0, 51.0]), iter([3.0, 4.0, 4.0, 4.1])

    def look(pid: int) -> int:
        looks.append(pid)
        return 0

    monkeypatch.setattr(usage, "offered_bytes", look)
    memory = OwnMemory(lambda: next(times), lambda: next(processor_times))
    memory.look_at_pages()
    memory.look_at_pages()
    assert len(looks) == 1
    memory.look_at_pages()
    assert len(looks) == 2


async def test_a_heartbeat_does_not_wait_for_a_slow_look(monkeypatch: pytest.MonkeyPatch) -> None:
    process, goes_on = Process(), threading.Event()
    monkeypatch.setattr(process, "look_at_pages", lambda: goes_on.wait(60))
    measured = MemoryInUse(TaskMemory(None), process)
    await measured.measure(0)
    process.resident = 300
    assert [await measured.measure(1) for _ in range(2)] == [200, 200]
    goes_on.set()


async def test_rows_count_even_where_they_are_not_resident() -> None:
    process, room = Process(), TaskMemory(1000)
    measured = MemoryInUse(room, process)
    await measured.measure(0)
    room.take_bytes(70)
    process.resident = 10
    assert await measured.measure(1) == 70


async def test_the_next_statement_keeps_what_was_freed() -> None:
    process = Process()
    time = Time()
    measured = MemoryInUse(TaskMemory(None), process, time, worth_bytes=0)
    for active in (1, 0) * 3:
        await measured.measure(active)
        time.now_s += CALM_S / 2
    assert process.given == 0


async def test_an_idle_worker_uses_the_memory_of_its_rows() -> None:
    at = worker({"t": memory(v=list(range(100_000)))})
    sql = Statement("SELECT max(v) FROM t", {})
    assert (await at.open(new_query_id(), sql, "here")).is_last
    found = [await at.describe() for _ in range(4)]
    assert [each.memory_used_bytes for each in found] == [0] * 4
    assert OwnMemory().measure_bytes() > 10 << 20
    await at.aclose()
