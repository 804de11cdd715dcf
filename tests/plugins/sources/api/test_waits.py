"""The time that an API asks its clients to wait."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from caraway_plugins.sources.api import waits

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
