"""The conformance suite of StateStore, written against the Protocol only."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_core.protocols.state import StateEntry, StateStore
from tests.plugins.stores.adapters import StateHarness

WAIT_S = 60.0


async def put(store: StateStore, key: str, value: bytes, ttl_s: float | None = None) -> int:
    """Write a key at its current revision."""
    standing = await store.get(key)
    expected = standing.revision if standing else None
    revision = await store.compare_and_set(key, value, expected=expected, ttl_s=ttl_s)
    assert revision is not None
    return revision


async def following(watcher: AsyncIterator[StateEntry]) -> tuple[str, bytes]:
    entry = await asyncio.wait_for(anext(watcher), WAIT_S)
    return entry.key, entry.value


async def test_absent_key_is_none(state: StateHarness) -> None:
    async with state.opened() as store:
        assert await store.get("jobs/1") is None


async def test_written_entry_is_read_with_its_revision(state: StateHarness) -> None:
    async with state.opened() as store:
        revision = await store.compare_and_set("jobs/1", b"\x00\xff", expected=None)
        assert revision is not None
        assert await store.get("jobs/1") == StateEntry("jobs/1", b"\x00\xff", revision)


async def test_revisions_are_those_of_live_entries(state: StateHarness) -> None:
    async with state.opened() as store:
        first = await put(store, "a/1", b"x")
        await put(store, "a/2", b"x")
        second = await put(store, "a/2", b"y")
        gone = await put(store, "a/3", b"x")
        await store.compare_and_set("a/3", None, expected=gone)
        keys = ["a/2", "a/1", "a/3", "a/4", "a/1"]
        assert list(await store.revisions(keys)) == [second, first, 0, 0, first]
        assert list(await store.revisions([])) == []


@pytest.mark.parametrize("expected", [None, 0, -1, 10**15])
async def test_write_at_another_revision_changes_nothing(
    state: StateHarness, expected: int | None
) -> None:
    async with state.opened() as store:
        await put(store, "jobs/1", b"first")
        before = await store.get("jobs/1")
        assert await store.compare_and_set("jobs/1", b"second", expected=expected) is None
        assert await store.compare_and_set("jobs/1", None, expected=expected) is None
        assert await store.get("jobs/1") == before


async def test_absent_key_is_not_at_a_revision(state: StateHarness) -> None:
    async with state.opened() as store:
        assert await store.compare_and_set("jobs/1", b"x", expected=1) is None
        assert await store.get("jobs/1") is None


async def test_revisions_grow_over_all_keys_also_through_deletions(state: StateHarness) -> None:
    async with state.opened() as store:
        first = await put(store, "a", b"1")
        second = await put(store, "b", b"1")
        third = await store.compare_and_set("a", None, expected=first)
        assert third is not None
        fourth = await put(store, "a", b"2")
        assert first < second < third < fourth


async def test_revision_of_a_deleted_key_does_not_come_back(state: StateHarness) -> None:
    async with state.opened() as store:
        stale = await put(store, "a", b"1")
        await store.compare_and_set("a", None, expected=stale)
        await put(store, "a", b"2")
        assert await store.compare_and_set("a", b"stale owner", expected=stale) is None


async def test_deleting_an_absent_key_succeeds(state: StateHarness) -> None:
    async with state.opened() as store:
        assert await store.compare_and_set("a", None, expected=None) is not None
        assert await store.get("a") is None


async def test_empty_value_is_refused(state: StateHarness) -> None:
    async with state.opened() as store:
        with pytest.raises(ValueError, match="empty"):
            await store.compare_and_set("a", b"", expected=None)


async def test_scan_is_sorted_and_keeps_to_the_prefix(state: StateHarness) -> None:
    async with state.opened() as store:
        keys = ["a/2", "a/10", "a", "b/1", "a0", "a/é", "a/\U0010ffff", "a/%", "a/_"]
        for key in keys:
            await put(store, key, b"x")
        assert [entry.key for entry in await store.scan("a/")] == sorted(
            key for key in keys if key.startswith("a/")
        )
        assert [entry.key for entry in await store.scan("")] == sorted(keys)
        assert [entry.key for entry in await store.scan("a/\U0010ffff")] == ["a/\U0010ffff"]
        assert await store.scan("c") == []


async def test_expired_entry_is_invisible_at_once(state: StateHarness) -> None:
    async with state.opened() as store:
        stale = await put(store, "live/1", b"x", ttl_s=10)
        state.clock.now += 9
        assert await store.get("live/1") is not None
        state.clock.now += 1
        assert await store.get("live/1") is None
        assert await store.scan("live/") == []
        assert await store.compare_and_set("live/1", b"y", expected=stale) is None
        assert await store.compare_and_set("live/1", b"y", expected=None) is not None


async def test_last_write_decides_on_expiry(state: StateHarness) -> None:
    async with state.opened() as store:
        await put(store, "renewed", b"1", ttl_s=10)
        await put(store, "kept", b"1", ttl_s=10)
        state.clock.now += 5
        await put(store, "renewed", b"2", ttl_s=10)
        await put(store, "kept", b"2")
        state.clock.now += 9
        assert [entry.key for entry in await store.scan("")] == ["kept", "renewed"]
        state.clock.now += 1
        assert [entry.key for entry in await store.scan("")] == ["kept"]


async def test_log_counts_from_zero_and_reads_from_any_offset(state: StateHarness) -> None:
    async with state.opened() as store:
        assert [await store.append("changes", bytes([n])) for n in range(5)] == [0, 1, 2, 3, 4]
        assert await store.append("other", b"") == 0
        assert await store.read_log("changes", 0, 2) == [b"\x00", b"\x01"]
        assert await store.read_log("changes", 3, 100) == [b"\x03", b"\x04"]
        assert await store.read_log("changes", 5, 100) == []
        assert await store.read_log("changes", 0, 0) == []
        assert await store.read_log("other", 0, 1) == [b""]
        assert await store.read_log("absent", 0, 1) == []


async def test_appends_at_once_get_an_offset_each(state: StateHarness) -> None:
    async with state.opened() as store:
        offsets = await asyncio.gather(*(store.append("log", b"%d" % n) for n in range(20)))
        assert sorted(offsets) == list(range(20))
        records = await store.read_log("log", 0, 20)
        assert [records[offset] for offset in offsets] == [b"%d" % n for n in range(20)]


async def test_contenders_at_once_have_one_winner(state: StateHarness) -> None:
    async with state.opened() as store:
        written = await asyncio.gather(
            *(store.compare_and_set("owner", b"%d" % n, expected=None) for n in range(20))
        )
        assert sum(revision is not None for revision in written) == 1


async def test_state_survives_reopening(state: StateHarness) -> None:
    async with state.opened() as store:
        revision = await put(store, "a", b"1")
        await put(store, "short", b"1", ttl_s=10)
        await store.append("log", b"record")
    state.clock.now += 10
    async with state.opened() as store:
        assert await store.scan("") == [StateEntry("a", b"1", revision)]
        assert await store.append("log", b"next") == 1
        assert await put(store, "a", b"2") > revision


async def test_watcher_gets_writes_and_deletions_in_order(state: StateHarness) -> None:
    async with state.opened() as store:
        await put(store, "a/before", b"x")
        watcher = store.watch("a/")
        revision = await put(store, "a/1", b"x")
        await put(store, "b/1", b"not under the prefix")
        assert await following(watcher) == ("a/1", b"x")
        await store.compare_and_set("a/1", None, expected=revision)
        assert await following(watcher) == ("a/1", b"")
        await put(store, "a/2", b"y")
        assert await following(watcher) == ("a/2", b"y")


async def test_watcher_begins_with_the_call(state: StateHarness) -> None:
    async with state.opened() as store:
        watcher = store.watch("a")
        await put(store, "a", b"1")
        assert await following(watcher) == ("a", b"1")


async def test_waiting_watcher_is_woken(state: StateHarness) -> None:
    async with state.opened() as store:
        waiting = asyncio.create_task(following(store.watch("a")))
        await store.get("a")
        await put(store, "a", b"1")
        assert await waiting == ("a", b"1")


async def test_watcher_sees_expiry_as_deletion(state: StateHarness) -> None:
    async with state.opened() as store:
        watcher = store.watch("live/")
        await put(store, "live/1", b"x", ttl_s=10)
        assert await following(watcher) == ("live/1", b"x")
        waiting = asyncio.create_task(following(watcher))
        state.clock.now += 10
        assert await waiting == ("live/1", b"")


async def test_watcher_that_falls_behind_gets_the_latest_of_each_key(state: StateHarness) -> None:
    async with state.opened() as store:
        watcher = store.watch("a/")
        keys = [f"a/{number}" for number in range(400)]
        for value in (b"old", b"new"):
            await asyncio.gather(*(put(store, key, value) for key in keys))
        await put(store, "a/last", b"x")
        latest: dict[str, bytes] = {}
        while "a/last" not in latest:
            key, value = await following(watcher)
            latest[key] = value
        assert latest == dict.fromkeys(keys, b"new") | {"a/last": b"x"}


async def test_watcher_bears_a_caller_that_gives_up_waiting(state: StateHarness) -> None:
    async with state.opened() as store:
        watcher = store.watch("a")
        for _ in range(3):
            waiting = asyncio.ensure_future(anext(watcher))
            await asyncio.wait([waiting], timeout=0)
            waiting.cancel()
            await asyncio.wait([waiting])
        await put(store, "a", b"1")
        assert await following(watcher) == ("a", b"1")


async def test_two_watchers_get_everything_each(state: StateHarness) -> None:
    async with state.opened() as store:
        watchers = [store.watch(""), store.watch("a")]
        await put(store, "a", b"1")
        assert [await following(watcher) for watcher in watchers] == [("a", b"1")] * 2


async def test_watcher_sees_writes_through_another_store(state: StateHarness) -> None:
    async with state.opened() as store, state.opened() as other:
        watcher = store.watch("a")
        await store.get("a")
        waiting = asyncio.create_task(following(watcher))
        await put(other, "a", b"1")
        assert await waiting == ("a", b"1")


async def test_closing_ends_watchers_and_refuses_work(state: StateHarness) -> None:
    async with state.opened() as store:
        waiting = asyncio.ensure_future(anext(store.watch("a")))
        await store.get("a")
        await store.aclose()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(waiting, WAIT_S)
        with pytest.raises(CarawayError, match="closed"):
            await store.get("a")
        await store.aclose()


async def test_work_that_was_queued_is_done_before_closing(state: StateHarness) -> None:
    async with state.opened() as store:
        appends = [asyncio.ensure_future(store.append("log", b"x")) for _ in range(5)]
        await asyncio.wait(appends, timeout=0)
        await store.aclose()
        assert [await append for append in appends] == [0, 1, 2, 3, 4]


async def test_watcher_catches_up_with_writes_of_others(state: StateHarness) -> None:
    taken: list[bytes] = []

    async def take(watcher: AsyncIterator[StateEntry]) -> None:
        async for entry in watcher:
            taken.append(entry.value)

    async with state.opened() as store, state.opened() as other:
        watcher = store.watch("a/")
        taking = asyncio.create_task(take(watcher))
        for number in range(600):
            await put(other, f"a/{number % 300}", str(number).encode())
            await put(other, "b", b"not under the prefix")
            if number % 200 == 3:
                await asyncio.wait_for(watcher.catch_up(), WAIT_S)
                assert taken[-1] == str(number).encode()
        await asyncio.wait_for(asyncio.gather(*(watcher.catch_up() for _ in range(9))), WAIT_S)
        assert taken[-1] == b"599"
        before = len(taken)
        await asyncio.wait_for(watcher.catch_up(), WAIT_S)
        assert len(taken) == before
        taking.cancel()


async def test_watcher_of_a_closed_store_does_not_catch_up(state: StateHarness) -> None:
    async with state.opened() as store:
        watcher = store.watch("a/")
    with pytest.raises(ShuttingDownError):
        await asyncio.wait_for(watcher.catch_up(), WAIT_S)
