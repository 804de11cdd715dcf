"""An executor reports the memory of its data and statements, and gives back what neither uses."""

from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_executor.resources.memory_in_use import CALM_BEATS, MemoryInUse, OwnMemory
from caraway_executor.resources.room import TaskMemory
from tests.kit.engine import memory
from tests.kit.workers import worker


class Process(OwnMemory):
    """A process whose resident memory is set, and falls when memory is given back."""

    def __init__(self) -> None:
        self.resident = 100
        self.given = 0

    def measure_bytes(self) -> int:
        return self.resident

    def give_back(self) -> None:
        self.given += 1
        self.resident -= 20


async def test_memory_that_is_kept_for_later_is_not_in_use() -> None:
    process, room = Process(), TaskMemory(1000)
    measured = MemoryInUse(room, process)
    assert await measured.measure(0) == 0
    process.resident = 400
    assert await measured.measure(1) == 300
    room.take_bytes(50)
    assert [await measured.measure(0) for _ in range(CALM_BEATS)] == [50] * CALM_BEATS
    assert process.given == 1 and process.resident == 380
    # Each end of work gives back once.
    assert [await measured.measure(0) for _ in range(2 * CALM_BEATS)] == [50] * 2 * CALM_BEATS
    assert process.given == 1
    process.resident = 390
    assert await measured.measure(2) == 60


async def test_rows_count_even_where_they_are_not_resident() -> None:
    process, room = Process(), TaskMemory(1000)
    measured = MemoryInUse(room, process)
    await measured.measure(0)
    room.take_bytes(70)
    process.resident = 10
    assert await measured.measure(1) == 70


async def test_the_next_statement_keeps_what_was_freed() -> None:
    process = Process()
    measured = MemoryInUse(TaskMemory(None), process)
    for active in (1, *[0] * (CALM_BEATS - 1)) * 2:
        await measured.measure(active)
    assert process.given == 0


async def test_an_idle_worker_uses_the_memory_of_its_rows() -> None:
    at = worker({"t": memory(v=list(range(100_000)))})
    sql = Statement("SELECT max(v) FROM t", {})
    assert (await at.open(new_query_id(), sql, "here")).is_last
    found = [await at.describe() for _ in range(4)]
    assert [each.memory_used_bytes for each in found] == [0] * 4
    assert OwnMemory().measure_bytes() > 10 << 20
    await at.aclose()
