"""The time before a request to an API: what it asks its clients to wait, and limits of datasets."""

import math
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from caraway_core.concurrency.backoff import Delays
from caraway_core.concurrency.clocks import SecondsClock

_BUSY = frozenset({429, 502, 503, 504})
_DELAYS = Delays(0.5, 30.0)
_MOST_HOSTS = 1_000


def wait_s(status: int, headers: Mapping[str, str], attempt: int, now: datetime) -> float | None:
    """Return the seconds until a request may be repeated; None: the answer is final."""
    asked = _asked_s(headers, now)
    if status in _BUSY:
        return backoff_s(attempt) if asked is None else asked
    # GitHub and others refuse with 403 or 429 when the requests of an hour are used up.
    is_limited = status == 403 and (
        "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    )
    return asked if is_limited else None


def backoff_s(attempt: int) -> float:
    """Return the seconds before a repetition where the server names none."""
    return _DELAYS.delay_s(attempt + 1)


def _asked_s(headers: Mapping[str, str], now: datetime) -> float | None:
    if (text := headers.get("retry-after", "").strip()) and (
        after_s := _after_s(text, now)
    ) is not None:
        return after_s
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        if reset.isascii() and reset.isdigit() and len(reset) < 12:
            return max(0.0, int(reset) - now.timestamp())
    return None


def _after_s(text: str, now: datetime) -> float | None:
    """Return the seconds of `Retry-After`, which is a number or a date."""
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else math.inf
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())


class Turns:
    """Gives each request to a host the next free time."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._next_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def wait_s(self, url: str, interval_s: float) -> float:
        """Return the time until a request may be sent, and reserve it; no interval, no wait."""
        if interval_s <= 0:
            return 0.0
        host = httpx.URL(url).host
        with self._lock:
            now_s = self._clock()
            if len(self._next_s) >= _MOST_HOSTS:
                self._next_s = {name: at for name, at in self._next_s.items() if at > now_s}
            at_s = max(now_s, self._next_s.get(host, now_s))
            self._next_s[host] = at_s + interval_s
        return at_s - now_s


turn_wait_s = Turns().wait_s
