"""Claims on work for a dataset: by schedulers, tasks and dead processes."""

import asyncio
import random
from pathlib import Path

from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.coordination.claims import CLAIM_TTL_S, Claim
from tests.kit.clocks import Clock
from tests.kit.interleaving import SteppedLoop, SteppedStore, run

KEY = "accelerating/orders"


async def test_tasks_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    old, new = Claim(store, KEY, "one/a"), Claim(store, KEY, "one/a")
    assert await old.acquire()
    assert await old.acquire()
    assert not await new.acquire()
    await old.release()
    assert await new.acquire()
    await store.aclose()


async def test_a_claim_of_another_task_is_not_released(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    store = SqliteStateStore(tmp_path / "state.db", clock)
    old, new, third = (Claim(store, KEY, owner) for owner in ("one/a", "one/a", "two/a"))
    assert await old.acquire()
    clock.now += 2 * CLAIM_TTL_S
    assert await new.acquire()
    await old.release()
    assert not await third.acquire()
    assert not await old.acquire()
    await store.aclose()


async def test_a_process_takes_over_from_an_earlier_one_of_its_scheduler(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    assert await Claim(store, KEY, "one/a").acquire()
    assert not await Claim(store, KEY, "two/b").acquire()
    assert await Claim(store, KEY, "one/b").acquire()
    assert not await Claim(store, KEY, "two/b").acquire()
    await store.aclose()


def test_a_claim_is_held_as_long_as_its_work_lasts() -> None:
    async def work(loop: SteppedLoop) -> None:
        store = SteppedStore(loop)
        one, two = (Claim(store, KEY, owner) for owner in ("one/a", "two/a"))
        async with one.held() as is_mine:
            assert is_mine
            for _ in range(10):
                await asyncio.sleep(CLAIM_TTL_S / 2)
                async with two.held() as is_mine:
                    assert not is_mine
        async with two.held() as is_mine:
            assert is_mine
        store.close()

    run(work, random.Random(1).randrange, steps_take_time=False)
