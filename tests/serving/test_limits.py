"""Request limits as values: parsing them, and how many requests pass."""

import re

import pytest

from caraway_serving import limits
from caraway_serving.limits import ParsedLimits, RequestLimits, TokenBucket
from tests.kit.clocks import Clock

WHOLE = """{"apps": 3, "replicas": 10, "pods": -1, "users": 5, "api_rps": 100,
 "request_timeout_secs": 60, "sql_query_timeout_secs": 30, "sql_concurrent_queries": 8,
 "resources": {"max_cpu": 4, "max_memory_gi": 16}}"""


def test_limits_object_of_the_management_api_is_read() -> None:
    assert limits.parse(WHOLE) == ParsedLimits(RequestLimits(100, 60, 30, 8))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", RequestLimits()),
        ("{}", RequestLimits()),
        ("api_rps: 5\n", RequestLimits(api_rps=5)),
        ("api_rps: -1\nsql_query_timeout_secs: null", RequestLimits()),
        ("resources: null", RequestLimits()),
    ],
)
def test_missing_limits_do_not_limit(text: str, expected: RequestLimits) -> None:
    assert limits.parse(text) == ParsedLimits(expected)


def test_unknown_limits_are_reported() -> None:
    assert limits.parse("{api_rsp: 1, new: {a: 2}}").unknown == ("api_rsp", "new")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is neither JSON nor YAML: "),
        ("[1]", "it holds no object"),
        ("5", "it holds no object"),
        ("api_rps: 0", "'api_rps' is 0; write an integer of 1 or more, or -1 for no limit"),
        ("api_rps: -2", "'api_rps' is -2"),
        ("api_rps: 1.5", "'api_rps' is 1.5"),
        ("api_rps: true", "'api_rps' is True"),
        ("sql_concurrent_queries: many", "'sql_concurrent_queries' is 'many'"),
        ("!!python/object:os.system {}", "it is neither JSON nor YAML"),
    ],
)
def test_invalid_limits_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"\A{re.escape(message)}") as caught:
        limits.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "schedulers", "expected"),
    [(None, 3, None), (10, 1, 10), (10, 3, 3), (2, 3, 1), (4, 0, 4)],
)
def test_schedulers_share_a_limit(limit: int | None, schedulers: int, expected: int | None) -> None:
    assert limits.share(limit, schedulers) == expected


def bucket(clock: Clock, rate: float | None) -> TokenBucket:
    made = TokenBucket(clock)
    made.refill_at(rate)
    return made


def passed(tokens: TokenBucket, tries: int) -> int:
    return sum(tokens.take_token() == 0.0 for _ in range(tries))


def test_requests_of_one_second_may_come_at_once() -> None:
    clock = Clock()
    tokens = bucket(clock, 10)
    assert passed(tokens, 30) == 10
    assert tokens.take_token() == pytest.approx(0.1)
    clock.now += 0.5
    assert passed(tokens, 30) == 5
    clock.now += 100
    assert passed(tokens, 30) == 10, "nobody saves up for more than a second"


def test_less_than_one_a_second() -> None:
    clock = Clock()
    tokens = bucket(clock, 0.25)
    assert passed(tokens, 3) == 1
    assert tokens.take_token() == pytest.approx(4.0)
    clock.now += 4.0
    assert passed(tokens, 3) == 1


def test_without_a_rate_every_request_passes() -> None:
    assert passed(bucket(Clock(), None), 1000) == 1000


def test_change_of_the_rate_gives_no_second_burst() -> None:
    clock = Clock()
    tokens = bucket(clock, 10)
    assert passed(tokens, 10) == 10
    tokens.refill_at(20)
    assert passed(tokens, 30) == 0
    clock.now += 0.5
    assert passed(tokens, 30) == 10
    tokens.refill_at(5)
    clock.now += 10
    assert passed(tokens, 30) == 5


@pytest.mark.parametrize(("wait_s", "expected"), [(0.01, "1"), (1.0, "1"), (1.2, "2")])
def test_waits_are_whole_seconds(wait_s: float, expected: str) -> None:
    assert limits.retry_after(wait_s) == expected
