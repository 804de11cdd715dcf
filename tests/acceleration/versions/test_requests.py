"""Repeated requests are applied once, however late and wherever they arrive."""

import asyncio
from pathlib import Path

import pytest

from caraway_acceleration.changes.ingesting import RequestReusedError
from caraway_acceleration.versions import requests
from tests.acceleration.changes.feeding import changes, site
from tests.kit.scheduler_pairs import pair
from tests.scheduler.coordination.freshness_rounds import CHANGING, takes


def test_a_token_distinguishes_keys_and_contents() -> None:
    first = requests.token("k1", b"a", b"b")
    assert first == requests.token("k1", b"a", b"b")
    assert requests.id_of(first) == requests.id_of(requests.token("k1", b"c"))
    assert first != requests.token("k1", b"ab", b"")
    assert requests.id_of(first) != requests.id_of(requests.token("k2", b"a", b"b"))


async def test_a_request_is_known_after_thousands_of_others(tmp_path: Path) -> None:
    first = requests.token("first", b"1")
    async with site(tmp_path) as place:
        async with place.taking() as one, place.taking("two") as two:
            await one.apply(changes((10**6, "a")), first)
            for start in range(0, 2400, 200):
                at = (one, two)[start // 200 % 2]
                others = range(start, start + 200)
                await asyncio.gather(
                    *(at.apply(changes((n, "x")), requests.token(f"r{n}", b"x")) for n in others)
                )
            held = two.current.ours
            assert held is not None and held.version.request_pages >= 2
            for again in (one, two):
                await again.apply(changes((10**6, "a")), first)
                with pytest.raises(RequestReusedError, match="not applied"):
                    await again.apply(changes((7, "b")), requests.token("first", b"2"))
        async with place.taking("three") as three:
            await three.apply(changes((10**6, "a")), first)
            await three.apply(changes((5, "x")), requests.token("r5", b"x"))
            found = await three.ids()
            assert sorted(found) == [*range(2400), 10**6]


async def test_of_two_with_one_key_at_once_the_other_body_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        both = [one.apply(changes((n, "x")), requests.token("k", bytes([n]))) for n in (1, 2)]
        answers = await asyncio.gather(*both, return_exceptions=True)
        assert answers[0] == 1
        assert isinstance(answers[1], RequestReusedError)
        assert await one.ids() == [1]


async def test_another_body_under_a_key_is_422_on_every_scheduler(tmp_path: Path) -> None:
    async with pair(tmp_path, CHANGING) as (one, two):
        await takes(one, two)

        async def send(at: object, id_: int) -> int:
            event = {"op": "c", "before": None, "after": {"id": id_, "v": 1}}
            answer = await at.running.api.post(  # type: ignore[attr-defined]
                "/v1/datasets/orders/cdc", json=[event], headers={"idempotency-key": "k"}
            )
            return int(answer.status_code)

        assert await send(one, 1) == 200
        assert await send(two, 1) == 200
        assert await send(two, 2) == 422
        assert await send(one, 2) == 422
        answer = await two.running.sql("SELECT id FROM orders")
        assert answer.json() == [{"id": 1}]


async def test_beyond_the_limit_the_oldest_keys_are_dropped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in (("RECENT", 10), ("PAGE", 5), ("MOST_PAGES", 2)):
        monkeypatch.setattr(requests, name, value)
    async with site(tmp_path) as place, place.taking() as one:
        for n in range(30):
            await one.apply(changes((n, "x")), requests.token(f"r{n}", b"x"))
            assert ("kept for less" in caplog.text) == (n >= 20)
        for n in range(10, 30):
            await one.apply(changes((n, "x")), requests.token(f"r{n}", b"x"))
        assert await one.ids() == [*range(30)]
        await one.apply(changes((100, "x")), requests.token("r0", b"x"))
        assert 100 in await one.ids()
