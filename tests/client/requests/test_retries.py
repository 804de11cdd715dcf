import pytest

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.requests import retries
from caraway_core.errors import CarawayError

UNREACHABLE = UnreachableError("http://127.0.0.1:1", "refused")


def test_delays_double_until_the_retries_are_used_up() -> None:
    policy = retries.reads(3)

    assert [policy.delay_s(UNREACHABLE, attempt) for attempt in range(4)] == [0.1, 0.2, 0.4, None]


def test_the_delay_requested_by_the_server_is_used() -> None:
    assert retries.reads(3).delay_s(ApiError(429, "busy", retry_after_s=7), 0) == 7


def test_a_requested_delay_that_is_too_long_is_not_waited_for() -> None:
    assert retries.reads(3).delay_s(ApiError(503, "down", retry_after_s=31), 0) is None


@pytest.mark.parametrize(
    "error", [ApiError(400, "bad"), ApiError(500, "bug"), BrokenResponseError("cut")]
)
def test_permanent_errors_are_not_retried(error: CarawayError) -> None:
    assert retries.reads(3).delay_s(error, 0) is None


def test_a_statement_is_not_retried_if_the_server_may_have_started_it() -> None:
    policy = retries.statements(3, is_read=False)

    assert policy.delay_s(ApiError(503, "down"), 0) is None
    assert policy.delay_s(BrokenResponseError("cut"), 0) is None
    assert policy.delay_s(ApiError(429, "busy"), 1) == 0.2
    assert policy.delay_s(UNREACHABLE, 2) == 0.4


def test_a_statement_that_only_reads_is_retried_after_any_error_that_passes() -> None:
    policy = retries.statements(3)

    assert policy.delay_s(ApiError(503, "down"), 0) == 0.1
    assert policy.delay_s(BrokenResponseError("cut"), 0) == 0.1
    assert policy.delay_s(ApiError(500, "failed"), 0) is None


@pytest.mark.parametrize(
    ("text", "expected"), [("5", 5.0), ("", None), ("soon", None), ("-1", None)]
)
def test_retry_after_is_parsed_as_seconds(text: str, expected: float | None) -> None:
    assert retries.retry_after_s({"retry-after": text}) == expected
