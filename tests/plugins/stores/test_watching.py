"""Watchers of a store: what they have seen, what they missed, and how they end."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from caraway_core.errors import CarawayError, ShuttingDownError, StateAwayError
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.watching import Beginnings, ChangePage, StateWatcher


class Store:
    """A store of one prefix, whose reads may wait or fail."""

    def __init__(self) -> None:
        self.entries: list[StateEntry] = []
        self.revision = 0
        self.forgotten = 0
        self.failure: CarawayError | None = None
        self.started: asyncio.Future[None] | None = None
        self.starts = 0

    def write(self, key: str) -> None:
        self.revision += 1
        kept = [each for each in self.entries if each.key != key]
        self.entries = [*kept, StateEntry(key, b"", self.revision)]

    async def read_start(self, submitted: Any) -> int:
        self.starts += 1
        if self.started is not None:
            await self.started
        return int(submitted)

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        if self.failure is not None:
            raise self.failure
        entries: Sequence[StateEntry] = [e for e in self.entries if e.revision > after]
        return ChangePage(entries, self.revision, self.forgotten)

    async def read_revision(self) -> int:
        return self.revision


def watching(store: Store, poll_s: float | None = None) -> StateWatcher:
    return StateWatcher("p/", store, store.revision, poll_s)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_watcher_sees_what_is_written_after_its_start() -> None:
    store = Store()
    store.write("before")
    watcher = watching(store)
    store.write("a")
    store.write("b")
    assert [(await anext(watcher)).key for _ in range(2)] == ["a", "b"]


async def test_of_several_writes_to_a_key_a_slow_watcher_sees_the_last() -> None:
    store = Store()
    watcher = watching(store)
    for _ in range(3):
        store.write("a")
    assert (await anext(watcher)).revision == 3


async def test_a_watcher_is_woken_by_a_write_of_its_process_and_polls_for_others() -> None:
    store = Store()
    waiting = asyncio.ensure_future(anext(watching(store, poll_s=0.001)))
    await turns()
    store.write("of another process")
    assert (await waiting).key == "of another process"
    watcher = watching(store)
    waiting = asyncio.ensure_future(anext(watcher))
    await turns()
    store.write("a")
    await turns()
    assert not waiting.done()
    watcher.wake()
    assert (await waiting).key == "a"


async def test_deletions_that_are_forgotten_were_missed() -> None:
    store = Store()
    watcher = watching(store)
    store.write("a")
    store.write("b")
    store.forgotten = 1
    with pytest.raises(CarawayError, match="watcher of 'p/' did not read for 3600 s"):
        await anext(watcher)


async def test_catching_up_waits_until_the_last_entry_is_processed() -> None:
    store = Store()
    watcher = watching(store)
    store.write("a")
    caught_up = asyncio.ensure_future(watcher.catch_up())
    await anext(watcher)
    later = asyncio.ensure_future(watcher.catch_up())
    await turns()
    assert not caught_up.done() and not later.done(), "the entry is still being processed"
    following = asyncio.ensure_future(anext(watcher))
    await caught_up
    await later
    await watcher.catch_up()  # Nothing is behind.
    store.write("b")
    caught_up = asyncio.ensure_future(watcher.catch_up())
    assert (await following).key == "b"
    assert not caught_up.done()
    following = asyncio.ensure_future(anext(watcher))
    await caught_up
    following.cancel()


async def test_a_failure_ends_the_iteration_and_those_that_catch_up() -> None:
    store = Store()
    watcher = watching(store)
    caught_up = asyncio.ensure_future(watcher.catch_up())
    await turns()
    store.failure = StateAwayError("the store is away")
    with pytest.raises(StateAwayError):
        await anext(watcher)
    with pytest.raises(StateAwayError):
        await caught_up
    store.failure = None
    store.write("a")
    assert (await anext(watcher)).key == "a"


async def test_a_store_that_closes_ends_the_watch() -> None:
    store = Store()
    watcher = watching(store)
    caught_up = asyncio.ensure_future(watcher.catch_up())
    await turns()
    store.failure = ShuttingDownError("the store is closed")
    assert [entry async for entry in watcher] == []
    with pytest.raises(ShuttingDownError):
        await caught_up


async def test_a_watcher_that_is_cancelled_goes_on() -> None:
    store = Store()
    store.started = asyncio.get_running_loop().create_future()
    watcher = watching(store)
    waiting = asyncio.ensure_future(anext(watcher))
    await turns()
    waiting.cancel()
    await turns()
    store.started.set_result(None)
    store.write("a")
    assert (await anext(watcher)).key == "a"


async def test_reads_wait_for_the_start_of_each_watcher() -> None:
    store, beginnings = Store(), Beginnings()
    store.started = asyncio.get_running_loop().create_future()
    for _ in range(2):
        beginnings.add(watching(store))
    reading = asyncio.ensure_future(beginnings.wait())
    await turns()
    assert not reading.done()
    store.started.set_result(None)
    await reading
    assert store.starts == 2
    await beginnings.wait()
    assert store.starts == 2
