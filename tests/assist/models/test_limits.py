import asyncio

import pytest

from caraway_assist.models.limits import KeyLimitError, LimitSettings, ModelLimits
from caraway_assist.models.usage import UsageLimits
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.ids import PrincipalId
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
    settings = LimitSettings(of_model=UsageLimits(2, 100, 150))
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
    settings = LimitSettings(of_key=UsageLimits(2, 100, 150))
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


async def test_a_call_that_waited_is_checked_again_at_its_turn() -> None:
    """Else all that wait would pass a limit that one of them uses up."""
    limits = ModelLimits("m", LimitSettings(concurrent=1, of_model=UsageLimits(None, 100)), Clock())
    release = asyncio.Event()
    answered: list[str] = []

    async def call(name: str) -> None:
        async with limits.slot():
            await release.wait()
            limits.count_tokens(100)
            answered.append(name)

    calls = [asyncio.ensure_future(call(name)) for name in ("first", "second", "third")]
    await asyncio.sleep(0)
    release.set()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert answered == ["first"]
    assert [type(each) for each in found[1:]] == [ModelAwayError, ModelAwayError]
    assert (limits.active, limits.queued) == (0, 0)


async def test_calls_that_the_model_refuses_do_not_use_up_the_share_of_a_key() -> None:
    clock = Clock()
    settings = LimitSettings(of_model=UsageLimits(1), of_key=UsageLimits(2))
    limits = ModelLimits("m", settings, clock)
    ann = PrincipalId("ann")

    async def call(key: PrincipalId | None) -> None:
        async with limits.slot(key):
            pass

    await call(PrincipalId("bob"))
    for _ in range(5):
        with pytest.raises(ModelAwayError, match="'requests_per_minute'") as caught:
            await call(ann)
        assert not isinstance(caught.value, KeyLimitError)
    clock.now += 61
    await call(ann)


@pytest.mark.parametrize("ends", ["cancelled", "failed"])
async def test_a_call_that_ends_badly_gives_its_place_to_the_next(ends: str) -> None:
    limits = ModelLimits("m", LimitSettings(concurrent=1))
    begun, released = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with limits.slot():
            begun.set()
            await released.wait()
            raise ValueError("failed")

    async def second() -> str:
        async with limits.slot():
            return "answered"

    one = asyncio.ensure_future(first())
    await begun.wait()
    two = asyncio.ensure_future(second())
    await asyncio.sleep(0)
    if ends == "cancelled":
        one.cancel()
    else:
        released.set()
    assert await two == "answered"
    await asyncio.wait((one,))
    assert one.cancelled() or isinstance(one.exception(), ValueError)
    assert (limits.active, limits.queued) == (0, 0)
    await asyncio.wait_for(limits.idle(), 10)


async def test_a_call_cancelled_in_the_moment_of_its_turn_passes_it_on() -> None:
    limits = ModelLimits("m", LimitSettings(concurrent=1))
    first = limits.slot()
    await first.__aenter__()
    second = asyncio.ensure_future(limits.slot().__aenter__())
    third_slot = limits.slot()
    third = asyncio.ensure_future(third_slot.__aenter__())
    await asyncio.sleep(0)
    assert limits.queued == 2
    # The place is given to the second, which is cancelled before it runs again.
    await first.__aexit__(None, None, None)
    second.cancel()
    await asyncio.wait_for(third, 10)
    await asyncio.wait((second,))
    assert (limits.active, limits.queued) == (1, 0)
    await third_slot.__aexit__(None, None, None)
    assert limits.active == 0


async def test_a_model_without_a_queue_refuses_at_once() -> None:
    limits = ModelLimits("m", LimitSettings(concurrent=1, queued=0))
    async with limits.slot():
        with pytest.raises(ModelAwayError, match="raise 'max_concurrent_requests'"):
            await limits.slot().__aenter__()
    assert limits.active == 0


async def test_the_last_budget_of_the_day_names_the_param_and_when_it_is_reset() -> None:
    limits = ModelLimits("m", LimitSettings(of_model=UsageLimits(None, None, 1)), Clock())
    limits.count_tokens(1)
    with pytest.raises(ModelError, match=r"'tokens_per_day'.*00:00 UTC") as caught:
        await limits.slot().__aenter__()
    assert not isinstance(caught.value, ModelAwayError)
