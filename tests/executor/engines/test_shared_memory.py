import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from caraway_executor.engines import shared_memory
from caraway_executor.engines.shared_memory import Place, ReadableMemory, WritableMemory
from tests.kit.turns import turn

PAGE = 4096
SIZE = 64 * PAGE


@contextmanager
def descriptor() -> Iterator[int]:
    made = shared_memory.create(SIZE)
    try:
        yield made
    finally:
        os.close(made)


@contextmanager
def writable() -> Iterator[WritableMemory]:
    with descriptor() as memory:
        yield WritableMemory(memory)


def test_places_are_used_again_and_joined() -> None:
    with writable() as memory:
        held = [memory.take_place(8 * PAGE) for _ in range(9)]
        assert held[8] is None and memory.taken_bytes == SIZE
        places = [each.place for each in held if each is not None]
        assert places == [Place(start, 8 * PAGE) for start in range(0, SIZE, 8 * PAGE)]
        # In an order that leaves gaps before, after and on both sides.
        for index in (1, 3, 2, 0, 7, 5, 6, 4):
            held[index] = None
        assert memory.taken_bytes == 0
        again = [memory.take_place(1), memory.take_place(PAGE + 1)]
        assert [each and each.place for each in again] == [Place(0, PAGE), Place(PAGE, 2 * PAGE)]


def test_one_place_has_no_large_share() -> None:
    with writable() as memory:
        assert memory.take_place(8 * PAGE + 1) is None
        assert memory.take_place(0) is None


def test_place_that_was_sent_is_taken_until_it_is_given_back() -> None:
    with writable() as memory:
        held = memory.take_place(PAGE)
        assert held is not None
        held.is_sent = True
        del held
        assert memory.taken_bytes == PAGE
        memory.give_back(0)
        assert memory.taken_bytes == 0


def test_place_may_be_dropped_in_the_middle_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the garbage collector does: it runs in any thread, whatever lock that holds."""
    with writable() as memory:
        held = [memory.take_place(PAGE)]
        fallocate = os.posix_fallocate

        def collects(descriptor: int, start: int, size: int) -> None:
            held.clear()
            fallocate(descriptor, start, size)

        monkeypatch.setattr(os, "posix_fallocate", collects)
        second = memory.take_place(PAGE)
        assert second is not None and second.place == Place(PAGE, PAGE) and not held
        assert memory.taken_bytes == PAGE


def test_no_place_without_memory_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "no space left")

    with writable() as memory:
        monkeypatch.setattr(os, "posix_fallocate", full)
        assert memory.take_place(PAGE) is None
        assert memory.taken_bytes == 0


def test_size_of_the_memory_cannot_be_changed() -> None:
    with descriptor() as memory:
        for size in (0, 2 * SIZE):
            with pytest.raises(PermissionError):
                os.ftruncate(memory, size)


async def test_content_is_read_in_place_until_its_last_use() -> None:
    dropped: list[int] = []
    with descriptor() as memory:
        room, reader = WritableMemory(memory), ReadableMemory(memory)
        first, held = room.take_place(PAGE), room.take_place(2 * PAGE)
    assert first is not None and held is not None
    numbers = pa.table({"n": range(100)})
    with pa.FixedSizeBufferWriter(held.buffer) as sink:
        with pa.ipc.new_stream(sink, numbers.schema) as writer:
            writer.write_table(numbers)
    view = reader.view(held.place, dropped.append)
    with pa.ipc.open_stream(view) as stream:
        users = [stream.read_all().slice(3, 4)]
    del view, stream
    await turn()
    assert users[0].to_pydict() == {"n": [3, 4, 5, 6]} and not dropped
    # The thread that drops it is not the one of the loop.
    thread = threading.Thread(target=users.clear)
    thread.start()
    await asyncio.to_thread(thread.join)
    await turn()
    assert dropped == [PAGE]


@pytest.mark.parametrize("place", [Place(-1, 1), Place(0, SIZE + 1), Place(SIZE, 1), Place(0, -1)])
async def test_place_elsewhere_is_refused(place: Place) -> None:
    with descriptor() as memory:
        reader = ReadableMemory(memory)
    with pytest.raises(ValueError, match="not in the shared memory"):
        reader.view(place, lambda _start: None)
