import asyncio

import pytest

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.ids import PrincipalId
from caraway_scheduler.models.limits import KeyLimitError, LimitSettings, ModelLimits
from tests.kit.clocks import Clock


async def test_calls_wait_for_a_place_in_turn() -> None:
    limits = ModelLimits("m", LimitSettings(concurrent=1, queued=1))
    order: list[str] = []
    release = asyncio.Event()

    async def call(name: str) -> None:
        async with limits.slot():
            order.append(name)
            await release.wait()

    first = asyncio.ensure_future(call("first"))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(call("second"))
    await asyncio.sleep(0)
    assert (limits.active, limits.queued, order) == (1, 1, ["first"])
    with pytest.raises(ModelAwayError, match="the limit") as caught:
        await call("third")
    assert caught.value.code == "model.rate_limit"
    release.set()
    await asyncio.gather(first, second)
    assert order == ["first", "second"]
    assert limits.active == 0
    await limits.idle()


async def test_a_waiting_call_that_is_cancelled_leaves_no_trace() -> None:
    limits = ModelLimits("m", LimitSettings(concurrent=1, queued=1))
    async with limits.slot():
        waiting = asyncio.ensure_future(limits.slot().__aenter__())
        await asyncio.sleep(0)
        assert limits.queued == 1
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert limits.queued == 0
    assert limits.active == 0


async def test_rates_and_budgets_say_when_they_end() -> None:
    clock = Clock()
    settings = LimitSettings(requests_per_minute=2, tokens_per_minute=100, tokens_per_day=150)
    limits = ModelLimits("m", settings, clock)

    async def call(tokens: int) -> None:
        async with limits.slot():
            limits.count_tokens(tokens)

    await call(10)
    clock.now += 20
    await call(10)
    with pytest.raises(ModelAwayError, match="2 requests a minute") as caught:
        await call(10)
    assert caught.value.retry_after_s in (40, 41)
    assert limits.active == 0
    clock.now += 45
    await call(100)
    with pytest.raises(ModelAwayError, match="100 tokens a minute"):
        await call(1)
    clock.now += 61
    await call(40)
    clock.now += 61
    with pytest.raises(ModelError, match="tokens_per_day") as used_up:
        await call(1)
    assert used_up.value.code == "model.quota"
    clock.now += 86_400
    await call(1)


async def test_each_key_has_a_share_of_its_own() -> None:
    clock = Clock()
    settings = LimitSettings(
        requests_per_minute_per_key=2, tokens_per_minute_per_key=100, tokens_per_day_per_key=150
    )
    limits = ModelLimits("m", settings, clock)
    ann, bob = PrincipalId("ann"), PrincipalId("bob")

    async def call(tokens: int, key: PrincipalId = ann) -> None:
        async with limits.slot(key):
            limits.count_tokens(tokens, key)

    await call(10)
    await call(10)
    with pytest.raises(KeyLimitError, match=r"2 requests a minute, .* for this key") as caught:
        await call(10)
    assert caught.value.retry_after_s in (60, 61) and caught.value.code == "model.rate_limit"
    await call(100, bob)
    with pytest.raises(KeyLimitError, match="'tokens_per_minute_per_key'"):
        await call(1, bob)
    assert limits.active == 0
    clock.now += 61
    await call(140)
    clock.now += 61
    with pytest.raises(KeyLimitError, match="150 tokens of 'tokens_per_day_per_key'") as used_up:
        await call(1)
    assert used_up.value.code == "model.quota" and used_up.value.retry_after_s > 60
    await call(1, bob)
    clock.now += 86_400
    await call(1)
