"""The time that an API asks its clients to wait."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from caraway_plugins.sources.api import waits
from caraway_plugins.sources.api.waits import Turns

NOW = datetime(2026, 11, 28, 3, tzinfo=UTC)
LATER = datetime(2026, 11, 28, 3, 0, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (200, {}, None),
        (429, {}, 0.5),
        (503, {"retry-after": "7"}, 7),
        (503, {"retry-after": format_datetime(LATER, usegmt=True)}, 20),
        (503, {"retry-after": format_datetime(NOW.replace(hour=1), usegmt=True)}, 0),
        (503, {"retry-after": "soon"}, 0.5),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(LATER.timestamp()))}, 20),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(LATER.timestamp()))}, 20),
        (403, {"retry-after": "3"}, 3),
        (403, {"x-ratelimit-remaining": "10"}, None),
        (403, {}, None),
        (500, {"retry-after": "3"}, None),
    ],
)
def test_wait_is_what_the_server_asks_for(
    status: int, headers: Mapping[str, str], seconds: float | None
) -> None:
    assert waits.wait_s(status, headers, 0, NOW) == seconds


def test_waits_grow_to_a_bound() -> None:
    found = [waits.backoff_s(attempt) for attempt in range(12)]
    assert found[:3] == [0.5, 1, 2] and max(found) == 30


def test_requests_to_one_host_get_one_time_after_the_other() -> None:
    now_s = [100.0]
    turns = Turns(lambda: now_s[0])
    assert [turns.wait_s("http://a/x", 2), turns.wait_s("http://a/y", 2)] == [0, 2]
    assert turns.wait_s("http://b/x", 2) == 0
    now_s[0] = 103
    assert turns.wait_s("http://a/x", 2) == 1
    now_s[0] = 200
    assert turns.wait_s("http://a/x", 2) == 0


def test_a_dataset_without_a_limit_does_not_wait() -> None:
    turns = Turns(lambda: 0.0)
    assert [turns.wait_s("http://a/x", 0) for _ in range(3)] == [0, 0, 0]
