"""Acknowledged refreshes and settings survive the death of any scheduler."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from caraway_acceleration import asking
from caraway_acceleration.versions.wishes import Wishes
from caraway_core.errors import StateAwayError, UnavailableError
from caraway_core.ids import TableName
from tests.kit.deadlines import eventually
from tests.kit.interleaving import SteppedLoop, SteppedStore, run
from tests.kit.scheduler_pairs import NEVER_S, Scheduler, scheduler

PATH = "/v1/datasets/orders/acceleration"
QUICK_S = 0.02


def manifest(folder: Path, extra: str = "") -> str:
    source = folder / "orders.csv"
    source.write_text("id,v\n1,a\n2,b\n3,c\n")
    return f"""\
runtime:
  caching: {{sql_results: {{enabled: false}}}}
datasets:
  - from: file:{source}
    name: orders
    acceleration: {{enabled: true, engine: file, mode: file{extra}}}
  - from: cdc:events
    name: events
    columns: [{{name: id, type: bigint}}]
    acceleration: {{enabled: true, primary_key: id}}
"""


async def version(at: Scheduler) -> int:
    found = (await at.running.api.get(PATH)).json()
    return int(found.get("version", {"number": 0})["number"])


async def reaches(at: Scheduler, number: int) -> None:
    async def look() -> bool:
        return await version(at) >= number

    await eventually(look, f"version {number} is read")


async def count(at: Scheduler) -> int:
    answer = await at.running.sql("SELECT count(*) AS n FROM orders")
    return int(answer.json()[0]["n"])


@asynccontextmanager
async def both(folder: Path, poll_s: float = QUICK_S) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    """Start two schedulers; the second one finds what the first one has loaded."""
    text = manifest(folder)
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, folder, "one", text, poll_s)
        await reaches(one, 1)
        two = await scheduler(stack, folder, "two", text, poll_s)
        await reaches(two, 1)
        yield one, two


def falls_dead(at: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a scheduler do nothing after its answers, as if it was killed at once."""
    known: Any = at.running.services.accelerations
    monkeypatch.setattr(known._kept[TableName("orders")].refresher, "ask", lambda _asked: None)


async def test_a_refresh_is_done_by_another_scheduler_after_a_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "GRACE_S", QUICK_S)
    async with both(tmp_path) as (one, two):
        before = max(await version(one), await version(two))
        falls_dead(one, monkeypatch)
        body = {"refresh_sql": "SELECT * FROM orders WHERE id < 3"}
        answer = await one.running.api.post(f"{PATH}/refresh", json=body)
        assert answer.status_code == 201
        await reaches(two, before + 1)
        assert await count(two) == 2

        async def forgotten() -> bool:
            return await two.store.get("accelerated-asked/orders") is None

        await eventually(forgotten, "the refresh is noted as done")


async def test_a_refresh_is_done_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = manifest(tmp_path)
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, tmp_path, "one", text)
        await reaches(one, 1)
        falls_dead(one, monkeypatch)
        body = {"refresh_sql": "SELECT * FROM orders WHERE id = 1"}
        assert (await one.running.api.post(f"{PATH}/refresh", json=body)).status_code == 201
    async with AsyncExitStack() as stack:
        again = await scheduler(stack, tmp_path, "one", text)
        await reaches(again, 2)
        assert await count(again) == 1


async def test_a_refresh_that_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "GRACE_S", 0.0)
    async with both(tmp_path) as (one, two):
        before = max(await version(one), await version(two))
        assert (await one.running.api.post(f"{PATH}/refresh")).status_code == 201
        for each in (one, two):
            await reaches(each, before + 1)

        async def quiet() -> bool:
            states = [(await each.running.api.get(PATH)).json() for each in (one, two)]
            return all("refresh" not in state for state in states)

        await eventually(quiet, "no scheduler refreshes")
        assert {await version(one), await version(two)} == {before + 1}


async def test_a_refresh_sql_set_on_one_scheduler_is_used_by_the_other(tmp_path: Path) -> None:
    async with both(tmp_path) as (one, two):
        body = {"refresh_sql": "SELECT * FROM orders WHERE id > 1"}
        assert (await one.running.api.patch(PATH, json=body)).status_code == 200
        known: Any = two.running.services.accelerations
        refresher = known._kept[TableName("orders")].refresher

        async def follows() -> bool:
            return refresher.state.settings.refresh_sql is not None

        await eventually(follows, "the other scheduler knows of it")
        before = await version(two)
        assert (await two.running.api.post(f"{PATH}/refresh")).status_code == 201
        await reaches(two, before + 1)
        assert await count(two) == 2


async def test_a_refresh_uses_the_refresh_sql_set_on_another_scheduler(tmp_path: Path) -> None:
    # Neither scheduler is notified of the other's changes.
    async with both(tmp_path, NEVER_S) as (one, two):
        before = await version(two)
        body = {"refresh_sql": "SELECT * FROM orders WHERE id > 1"}
        assert (await one.running.api.patch(PATH, json=body)).status_code == 200
        assert (await two.running.api.post(f"{PATH}/refresh")).status_code == 201
        await reaches(two, before + 1)
        assert await count(two) == 2
        own = {"refresh_sql": "SELECT * FROM orders WHERE id = 1"}
        assert (await two.running.api.post(f"{PATH}/refresh", json=own)).status_code == 201
        await reaches(two, before + 2)
        assert await count(two) == 1


@pytest.mark.parametrize("body", [{}, {"refresh_sql": None}])
async def test_an_empty_change_keeps_what_is_set(tmp_path: Path, body: Any) -> None:
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, tmp_path, "one", manifest(tmp_path))
        await reaches(one, 1)
        wanted = {"refresh_sql": "SELECT * FROM orders WHERE id > 2"}
        assert (await one.running.api.patch(PATH, json=wanted)).status_code == 200
        assert (await one.running.api.patch(PATH, json=body)).status_code == 200
        before = await version(one)
        assert (await one.running.api.post(f"{PATH}/refresh")).status_code == 201
        await reaches(one, before + 1)
        assert await count(one) == 1


async def test_what_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, tmp_path, "one", manifest(tmp_path))
        await reaches(one, 1)
        bad = {"refresh_sql": "SELECT nothing_of_it FROM orders"}
        for answer in (
            await one.running.api.patch(PATH, json=bad),
            await one.running.api.post(f"{PATH}/refresh", json=bad),
            await one.running.api.patch("/v1/datasets/events/acceleration", json={}),
            await one.running.api.patch(
                "/v1/datasets/events/acceleration", json={"refresh_sql": "SELECT * FROM events"}
            ),
        ):
            assert answer.status_code == 400, answer.text
        assert await one.store.get("accelerated-asked/orders") is None


async def test_nothing_is_acknowledged_while_the_state_store_is_away(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, tmp_path, "one", manifest(tmp_path))
        await reaches(one, 1)
        one.store.away = StateAwayError("the state store is away")
        assert (await one.running.api.post(f"{PATH}/refresh")).status_code == 503
        body = {"refresh_sql": "SELECT * FROM orders WHERE id > 2"}
        assert (await one.running.api.patch(PATH, json=body)).status_code == 503
        one.store.away = None


class ContendedStore(SteppedStore):
    """A store in which another writer is always first."""

    async def compare_and_set(self, key: str, value: bytes | None, **how: Any) -> int | None:
        await super().compare_and_set(key, b"another", expected=how["expected"])
        return None


def test_too_many_concurrent_refresh_requests_give_a_retryable_error() -> None:
    async def work(loop: SteppedLoop) -> None:
        wishes = Wishes(ContendedStore(loop), TableName("orders"))
        with pytest.raises(UnavailableError, match="send it again"):
            await wishes.ask({})

    run(work, lambda _choices: 0)
