"""The thread of a connection: order, cancellation, errors without paths, closing."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_plugins.stores.sqlite.lane import SqliteLane

WAIT_S = 60.0


class Door:
    """Work that waits in the thread of a lane until it may go."""

    def __init__(self) -> None:
        self.is_in = threading.Event()
        self.may_go = threading.Event()

    def __call__(self, _connection: sqlite3.Connection) -> str:
        self.is_in.set()
        assert self.may_go.wait(WAIT_S)
        return "went"


def lane(tmp_path: Path) -> SqliteLane:
    return SqliteLane(tmp_path / "state.db", "test")


def is_open(line: SqliteLane) -> bool:
    try:
        line._connection.total_changes  # noqa: B018
    except sqlite3.ProgrammingError as exc:
        return "closed" not in str(exc)
    return True


async def test_work_is_done_one_by_one_in_order(tmp_path: Path) -> None:
    line = lane(tmp_path)
    done: list[int] = []
    work = [line.submit(lambda _file, n=number: done.append(n)) for number in range(200)]  # type: ignore[misc]
    await asyncio.wrap_future(work[-1])
    assert done == list(range(200))
    await line.aclose()


async def test_work_that_is_cancelled_in_the_queue_is_never_done(tmp_path: Path) -> None:
    line = lane(tmp_path)
    door, done = Door(), []
    first = asyncio.ensure_future(line.run_work(door))
    await asyncio.to_thread(door.is_in.wait, WAIT_S)
    second = asyncio.ensure_future(line.run_work(lambda _file: done.append(2)))
    third = asyncio.ensure_future(line.run_work(lambda _file: done.append(3)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((second,))
    door.may_go.set()
    assert await first == "went"
    await third
    assert done == [3]
    await line.aclose()


async def test_an_error_of_the_work_has_advice_and_no_folder(tmp_path: Path) -> None:
    line = lane(tmp_path)
    with pytest.raises(CarawayError, match=r"state store state\.db: ") as caught:
        await line.run_work(lambda file: file.execute("SELECT nothing"))
    assert str(tmp_path) not in caught.value.message
    assert await line.run_work(lambda file: file.execute("SELECT 1").fetchone()) == (1,)
    await line.aclose()


async def test_closing_waits_for_what_was_asked_before(tmp_path: Path) -> None:
    line = lane(tmp_path)
    door = Door()
    first = asyncio.ensure_future(line.run_work(door))
    await asyncio.to_thread(door.is_in.wait, WAIT_S)
    closing = asyncio.ensure_future(line.aclose())
    await asyncio.sleep(0)
    with pytest.raises(ShuttingDownError, match=r"state\.db is closed"):
        line.submit(lambda _file: None)
    assert not closing.done()
    door.may_go.set()
    await closing
    assert await first == "went" and not is_open(line)
    await line.aclose()


async def test_closing_that_is_cancelled_closes_the_connection(tmp_path: Path) -> None:
    line = lane(tmp_path)
    door = Door()
    first = asyncio.ensure_future(line.run_work(door))
    await asyncio.to_thread(door.is_in.wait, WAIT_S)
    closing = asyncio.ensure_future(line.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait((closing,))
    assert closing.cancelled()
    door.may_go.set()
    await first
    await asyncio.to_thread(line._thread.shutdown)
    assert not is_open(line)
    # The last connection to a file removes its write-ahead log.
    assert not (tmp_path / "state.db-wal").exists()


async def test_a_store_whose_closing_is_cancelled_closes_both_connections(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    await store.append("log", b"1")
    doors = [Door(), Door()]
    lanes = (store._reads, store._writes)
    work = [
        asyncio.ensure_future(line.run_work(door)) for line, door in zip(lanes, doors, strict=True)
    ]
    for door in doors:
        await asyncio.to_thread(door.is_in.wait, WAIT_S)
    closing = asyncio.ensure_future(store.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.sleep(0)
    for door in doors:
        door.may_go.set()
    await asyncio.wait((closing, *work), timeout=WAIT_S)
    assert closing.cancelled()
    for line in lanes:
        await asyncio.to_thread(line._thread.shutdown)
        assert not is_open(line)
    again = SqliteStateStore(tmp_path / "state.db")
    assert await again.read_log("log", 0, 10) == [b"1"]
    await again.aclose()


def test_a_file_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database at all, but a text" * 100)
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(CarawayError, match="the file is damaged"):
            lane(tmp_path)
    assert threading.active_count() == before
