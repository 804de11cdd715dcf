"""Drain requests, which schedulers share through the state store."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import CarawayError, ExecutorLostError
from caraway_core.ids import ExecutorId
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.membership.drains import DRAINS, SETTLED_AFTER_S, Drains
from tests.kit.clocks import Clock
from tests.scheduler.membership.membership_clusters import WAIT_S, cluster

A, B = ExecutorId("a"), ExecutorId("b")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


async def test_drained_executor_is_listed_counted_and_given_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        await running.membership.drain(A)
        assert running.states == {"a": "draining", "b": "ready"}
        assert [member.executor_id for member in running.membership.ready()] == ["b"]
        assert running.membership.is_draining(A) and not running.membership.is_draining(B)
        await running.rounds(3)
        assert running.states["a"] == "draining"
        await running.membership.undo_drain(A)
        assert await running.membership.wait_ready(2, WAIT_S)


async def test_it_has_drained_once_all_schedulers_know_and_nothing_runs(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.fleet["a"].change(active_tasks=1)
        await running.rounds(2)
        await running.membership.drain(A)
        running.clock.now += SETTLED_AFTER_S
        await running.rounds(2)
        assert not running.membership.has_drained(A), "a task runs"
        running.fleet["a"].change(active_tasks=0)
        await running.until(lambda: running.membership.has_drained(A))
        assert not running.membership.has_drained(B), "nobody asked it to"


async def test_it_has_not_drained_before_others_can_know(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        await running.membership.drain(A)
        assert not running.membership.has_drained(A)
        await running.membership.drain(A)
        running.clock.now += SETTLED_AFTER_S
        assert running.membership.has_drained(A), "a second request does not start over"


async def test_every_scheduler_follows(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        store = SqliteStateStore(tmp_path / "state.db")
        other = Drains(store, running.clock)
        await other.ask(B, "first")
        await running.until(lambda: running.states["b"] == "draining")
        await other.undo(B)
        await running.until(lambda: running.states["b"] == "ready")
        await store.aclose()


async def test_restarted_scheduler_knows_drains_before_the_first_heartbeat(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, "a") as running:
        await running.membership.drain(A)
    async with cluster(tmp_path, "a", version=0) as running:
        await running.until(lambda: bool(running.states))
        assert running.states == {"a": "draining"}


async def test_executor_that_returns_works_again(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        await running.membership.drain(A)
        running.fleet["a"].restart()
        assert await running.membership.wait_ready(1, WAIT_S)
        await running.until(lambda: not running.membership._drains.wishes)
        assert await running.store.scan(DRAINS) == []


async def test_request_for_an_absent_executor_is_deleted(path: Path, clock: Clock) -> None:
    store = SqliteStateStore(path)
    drains = Drains(store, clock)
    await drains.ask(A, "first")
    await drains.follow({})
    clock.now += 599
    await drains.follow({})
    assert drains.wishes == {A: "first"}
    clock.now += 1
    await drains.follow({})
    assert (drains.wishes, await store.scan(DRAINS)) == ({}, [])
    await store.aclose()


async def test_short_absence_does_not_count(path: Path, clock: Clock) -> None:
    store = SqliteStateStore(path)
    drains = Drains(store, clock)
    await drains.ask(A, "first")
    for registered in ({}, {A: "first"}, {}):
        await drains.follow(registered)
        clock.now += 599
    assert drains.wishes == {A: "first"}
    await store.aclose()


async def test_unknown_and_lost_executors_cannot_drain(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        with pytest.raises(ExecutorLostError, match="not in the cluster"):
            await running.membership.drain(B)
        running.fleet["a"].is_silent = True
        running.membership.lost(A, "x")
        with pytest.raises(ExecutorLostError, match="not in the cluster"):
            await running.membership.drain(A)
        await running.membership.undo_drain(B)


async def test_the_last_requests_hold_while_the_store_is_away(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStateStore(path)
    drains = Drains(store, clock)
    await drains.ask(A, "first")
    await store.aclose()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await drains.follow({A: "first"})
    assert drains.wishes == {A: "first"}
    assert [one.message for one in caplog.records] == ["drain requests cannot be read"]
    with pytest.raises(CarawayError):
        await drains.ask(B, "first")


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"other": 1}'])
async def test_entry_that_cannot_be_read_is_cleared(path: Path, clock: Clock, value: bytes) -> None:
    store = SqliteStateStore(path)
    await store.compare_and_set(DRAINS + "a", value, expected=None)
    await store.compare_and_set(
        DRAINS + "b", json.dumps({"incarnation": "first"}).encode(), expected=None
    )
    drains = Drains(store, clock)
    await drains.follow({A: "first", B: "first"})
    assert drains.wishes == {B: "first"}
    await store.aclose()


async def test_request_that_changes_while_it_is_deleted_is_kept(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStateStore(path, clock)
    drains = Drains(store, clock)
    await drains.ask(A, "before")
    clear = store.compare_and_set

    async def late(key: str, value: bytes | None, **options: Any) -> int | None:
        monkeypatch.setattr(store, "compare_and_set", clear)
        await drains.undo(A)
        await drains.ask(A, "after")
        return await clear(key, value, **options)

    monkeypatch.setattr(store, "compare_and_set", late)
    await drains.follow({A: "after"})
    assert drains.wishes == {A: "after"}
    await drains.follow({A: "after"})
    assert drains.wishes == {A: "after"}, "the new wish was not cleared with the old one"

    async def taken_back(key: str, value: bytes | None, **options: Any) -> int | None:
        monkeypatch.setattr(store, "compare_and_set", clear)
        await drains.undo(A)
        return await clear(key, value, **options)

    monkeypatch.setattr(store, "compare_and_set", taken_back)
    await drains.follow({A: "another"})
    assert drains.wishes == {}
    await store.aclose()
