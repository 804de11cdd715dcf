import logging
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.protocols.state import StateEntry
from caraway_core.settings import Address
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.membership.registrations import (
    CHANNELS_TTL_S,
    TTL_S,
    Registrations,
    stored_channels,
)
from tests.kit.clocks import Clock

A = ExecutorStatus(ExecutorId("a"), "ready", address="a.test")
GONE = ExecutorStatus(ExecutorId("a"), "lost", address="a.test")


class CountingStore(SqliteStateStore):
    """Counts the attempted writes, and fails them on demand."""

    writes = 0
    is_away = False

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        self.writes += 1
        if self.is_away:
            raise CarawayError("state store is away")
        return await super().compare_and_set(key, value, expected=expected, ttl_s=ttl_s)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> CountingStore:
    return CountingStore(tmp_path / "state.db", clock)


async def keys(store: CountingStore) -> list[str]:
    return [entry.key for entry in await store.scan("")]


async def test_entries_are_written_on_change_and_before_they_expire(
    store: CountingStore, clock: Clock
) -> None:
    registered = Registrations(store, "one", "1.0", clock)
    for _ in range(5):
        await registered.renew([A], {})
    assert await keys(store) == ["executors/a", "schedulers/one"]
    assert store.writes == 2
    await registered.renew([ExecutorStatus(ExecutorId("a"), "draining", address="a.test")], {})
    assert store.writes == 3
    for _ in range(10):
        clock.now += TTL_S / 3
        await registered.renew([A], {})
        assert await keys(store) == ["executors/a", "schedulers/one"]
    await store.aclose()


async def test_entries_of_lost_and_refused_executors_are_deleted(
    store: CountingStore, clock: Clock
) -> None:
    registered = Registrations(store, "one", "1.0", clock)
    await registered.renew([A], {})
    await registered.renew([GONE], {})
    assert await keys(store) == ["schedulers/one"]
    await registered.renew([ExecutorStatus(ExecutorId("a"), "refused")], {})
    assert await keys(store) == ["schedulers/one"]
    await store.aclose()


async def test_two_schedulers_share_the_entries_and_count_each_other(
    store: CountingStore, clock: Clock
) -> None:
    one = Registrations(store, "one", "1.0", clock)
    two = Registrations(store, "two", "1.0", clock)
    for _ in range(20):
        for scheduler in (one, two):
            await scheduler.renew([A], {})
        clock.now += 1
    assert await keys(store) == ["executors/a", "schedulers/one", "schedulers/two"]
    assert (one.scheduler_count, two.scheduler_count) == (2, 2)
    clock.now += TTL_S
    await one.renew([A], {})
    assert one.scheduler_count == 1
    await store.aclose()


async def test_store_that_is_away_is_logged_once_and_written_when_it_is_back(
    store: CountingStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    registered = Registrations(store, "one", "1.0", clock)
    store.is_away = True
    for _ in range(3):
        await registered.renew([A], {})
    store.is_away = False
    await registered.renew([A], {})
    assert [record.message for record in caplog.records] == [
        "registrations cannot be stored", "registrations are stored again",
    ]  # fmt: skip
    assert await keys(store) == ["executors/a", "schedulers/one"]
    await store.aclose()


async def test_entry_of_another_scheduler_is_replaced(store: CountingStore, clock: Clock) -> None:
    revision = await store.compare_and_set("executors/a", b"old", expected=None)
    assert revision is not None
    await Registrations(store, "one", "1.0", clock).renew([A], {})
    entry = await store.get("executors/a")
    assert isinstance(entry, StateEntry) and entry.value != b"old"
    await store.aclose()


async def test_withdrawal_deletes_the_entry(store: CountingStore, clock: Clock) -> None:
    registered = Registrations(store, "one", "1.0", clock)
    await registered.renew([A], {})
    await registered.withdraw()
    assert await keys(store) == ["executors/a"]
    store.is_away = True
    await registered.withdraw()
    await store.aclose()


async def test_addresses_of_channels_outlive_the_schedulers_that_wrote_them(
    store: CountingStore, clock: Clock
) -> None:
    place, other = Address("10.0.0.1", 4000), Address("10.0.0.1", 5000)
    registered = Registrations(store, "one", "1.0", clock)
    await registered.renew([A], {A.executor_id: place})
    writes = store.writes
    await registered.renew([A], {A.executor_id: place})
    assert store.writes == writes
    await registered.renew([GONE], {})
    clock.now += TTL_S
    assert await keys(store) == ["channels/a"]
    assert await stored_channels(store) == {A.executor_id: place}
    # A restarted executor listens elsewhere; another scheduler says so.
    await Registrations(store, "two", "1.0", clock).renew([A], {A.executor_id: other})
    assert await stored_channels(store) == {A.executor_id: other}
    clock.now += CHANNELS_TTL_S
    assert await stored_channels(store) == {}
    await store.aclose()
