"""Limits of a minute and a day, checked against plain counting of everything that happened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_assist.models.usage import Usage, UsageLimits, UsedUp
from tests.kit.clocks import Clock

DAY_S = 86_400.0


def test_without_limits_nothing_is_refused_and_nothing_is_kept() -> None:
    usage = Usage(UsageLimits(), Clock())
    for _ in range(1000):
        usage.count_request()
        usage.count_tokens(10**9)
    assert usage.used_up() is None
    assert not usage._requests and not usage._tokens


@pytest.mark.parametrize("after_s", [0.0, 0.5, 59.0, 59.999])
def test_request_at_the_limit_waits_for_the_first_of_the_minute(after_s: float) -> None:
    clock = Clock()
    usage = Usage(UsageLimits(requests_per_minute=2), clock)
    usage.count_request()
    clock.now += after_s
    usage.count_request()
    reached = usage.used_up()
    assert reached is not None and reached.limit == "requests_per_minute"
    clock.now += reached.wait_s
    assert usage.used_up() is None


def test_a_minute_ends_after_sixty_seconds_and_not_before() -> None:
    clock = Clock()
    usage = Usage(UsageLimits(requests_per_minute=1), clock)
    usage.count_request()
    clock.now += 59.999
    assert usage.used_up() == UsedUp("requests_per_minute", 1, 1)
    clock.now += 0.001
    assert usage.used_up() is None


def test_tokens_wait_until_enough_of_them_are_old_not_only_the_first() -> None:
    clock = Clock()
    usage = Usage(UsageLimits(tokens_per_minute=100), clock)
    usage.count_tokens(1)
    clock.now += 30
    usage.count_tokens(500)
    clock.now += 10
    reached = usage.used_up()
    # In 20 s the first token is forgotten, and 500 are left.
    assert reached is not None and reached.wait_s in (50, 51)
    clock.now += reached.wait_s
    assert usage.used_up() is None


def test_the_budget_of_a_day_ends_at_midnight_utc() -> None:
    clock = Clock(now=3 * DAY_S - 100)
    usage = Usage(UsageLimits(tokens_per_day=10), clock)
    usage.count_tokens(9)
    assert usage.used_up() is None
    usage.count_tokens(1)
    reached = usage.used_up()
    assert reached is not None and reached.limit == "tokens_per_day"
    assert reached.wait_s in (100, 101)
    clock.now += 99.9
    assert usage.used_up() is not None
    clock.now += 0.2
    assert usage.used_up() is None


def test_the_longest_wait_is_told_first() -> None:
    usage = Usage(UsageLimits(1, 1, 1), Clock())
    usage.count_request()
    usage.count_tokens(1)
    reached = usage.used_up()
    assert reached is not None and reached.limit == "tokens_per_day"


def test_an_answer_without_tokens_counts_for_nothing() -> None:
    usage = Usage(UsageLimits(tokens_per_minute=1), Clock())
    usage.count_tokens(0)
    assert usage.used_up() is None and not usage._tokens


@pytest.mark.parametrize("back_s", [120.0, 3_600.0, 2 * DAY_S])
def test_a_clock_that_is_set_back_blocks_nobody_for_long(back_s: float) -> None:
    clock = Clock(now=10 * DAY_S)
    usage = Usage(UsageLimits(requests_per_minute=1, tokens_per_minute=1), clock)
    usage.count_request()
    usage.count_tokens(5)
    assert usage.used_up() is not None
    clock.now -= back_s
    assert usage.used_up() is None
    usage.count_request()
    clock.now += 60
    assert usage.used_up() is None


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 45).map(float),
        st.one_of(st.none(), st.integers(0, 40)),
    ),
    max_size=60,
)


@given(
    events=EVENTS,
    requests=st.none() | st.integers(1, 5),
    minute=st.none() | st.integers(1, 60),
    day=st.none() | st.integers(1, 200),
    start=st.floats(DAY_S - 200, DAY_S + 10),
)
def test_every_refusal_is_due_and_its_wait_is_enough(
    events: list[tuple[float, int | None]],
    requests: int | None,
    minute: int | None,
    day: int | None,
    start: float,
) -> None:
    clock = Clock(now=start)
    usage = Usage(UsageLimits(requests, minute, day), clock)
    calls: list[float] = []
    tokens: list[tuple[float, int]] = []

    def is_refused(now: float) -> bool:
        recent = sum(at > now - 60 for at in calls)
        of_minute = sum(count for at, count in tokens if at > now - 60)
        of_day = sum(count for at, count in tokens if at // DAY_S == now // DAY_S)
        return any(
            most is not None and used >= most
            for most, used in ((requests, recent), (minute, of_minute), (day, of_day))
        )

    for pause_s, used in events:
        clock.now += pause_s
        reached = usage.used_up()
        assert (reached is not None) == is_refused(clock.now)
        if reached is not None:
            later = Clock(now=clock.now + reached.wait_s)
            # The reported limit allows a call by then; another one may still be reached.
            usage._clock, told = later, reached.limit
            after = usage.used_up()
            assert after is None or after.limit != told
            clock.now = later.now
            usage._clock = clock
            continue
        calls.append(clock.now)
        usage.count_request()
        if used is not None:
            tokens.append((clock.now, used))
            usage.count_tokens(used)
