"""Limits set outside the manifest: parsing them, and rate limiting requests."""

import math
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import yaml

from caraway_core.concurrency.clocks import SecondsClock

UNLIMITED = -1
_OTHERS = frozenset({"apps", "replicas", "pods", "users", "resources"})
"""Known limits that are enforced elsewhere."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The request limits of a runtime, over all its schedulers; None is unlimited."""

    api_rps: int | None = None
    request_timeout_secs: int | None = None
    sql_query_timeout_secs: int | None = None
    sql_concurrent_queries: int | None = None


_OURS = ("api_rps", "request_timeout_secs", "sql_query_timeout_secs", "sql_concurrent_queries")


@dataclass(frozen=True, slots=True)
class ParsedLimits:
    """Limits, and keys that are not known."""

    limits: RequestLimits
    unknown: tuple[str, ...] = ()
    """Unknown keys, which are ignored; a newer service may send more of them."""


def parse(text: str) -> ParsedLimits:
    """Parse the limits object of the management API, from JSON or YAML.

    Raises:
        ValueError: the text is invalid; the message says what to change.
    """
    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(f"it is neither JSON nor YAML: {' '.join(str(exc).split())}") from exc
    if found is None:
        found = {}
    if not isinstance(found, dict):
        raise ValueError("it holds no object; write for example {api_rps: 100}")
    wanted = {name: _limit(name, found[name]) for name in _OURS if found.get(name) is not None}
    unknown = sorted(str(name) for name in found if name not in _OTHERS and name not in _OURS)
    return ParsedLimits(RequestLimits(**wanted), tuple(unknown))


def _limit(name: str, value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value == 0 or value < UNLIMITED:
        raise ValueError(
            f"'{name}' is {value!r}; write an integer of 1 or more, or -1 for no limit"
        )
    return None if value == UNLIMITED else value


def share(limit: int | None, schedulers: int) -> int | None:
    """Return one scheduler's share of a limit, at least 1."""
    return None if limit is None else max(1, limit // max(1, schedulers))


class TokenBucket:
    """A thread-safe token bucket that holds the tokens of one second."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self.rate: float | None = None
        self._clock = clock
        self._tokens = 0.0
        self._at = 0.0
        self._lock = Lock()

    def refill_at(self, rate: float | None) -> None:
        """Set the rate from now on; None removes the limit."""
        with self._lock:
            if rate == self.rate:
                return
            if rate is not None:
                # Changing a limit does not grant another burst.
                left = _burst(rate) if self.rate is None else self._left(self.rate)
                self._tokens = min(left, _burst(rate))
                self._at = self._clock()
            self.rate = rate

    def take_token(self) -> float:
        """Take a token and return 0.0, or return the seconds until one is available."""
        with self._lock:
            rate = self.rate
            if rate is None:
                return 0.0
            self._tokens, self._at = self._left(rate), self._clock()
            if self._tokens >= 1.0:
                self._tokens -= 1.0
                return 0.0
            return (1.0 - self._tokens) / rate

    def _left(self, rate: float) -> float:
        return min(_burst(rate), self._tokens + (self._clock() - self._at) * rate)


def _burst(rate: float) -> float:
    return max(1.0, rate)


@dataclass(slots=True)
class InForce:
    """The current limits of this process, which the gates read for each request."""

    bucket: TokenBucket = field(default_factory=TokenBucket)
    request_timeout_s: float | None = None


def too_many(rate: float) -> str:
    """Return the message for a request that exceeds the rate limit."""
    return f"more than {rate:g} requests a second; the limit api_rps allows no more"


def retry_after(wait_s: float) -> str:
    """Format a wait for the `Retry-After` header."""
    return str(max(1, math.ceil(wait_s)))
