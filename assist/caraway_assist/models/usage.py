"""Counts calls and tokens of one minute and one day against limits."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from caraway_core.concurrency.clocks import SecondsClock

_MINUTE_S = 60.0
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """The most requests and tokens, each at least 1; None means no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None


NO_LIMITS = UsageLimits()


@dataclass(frozen=True, slots=True)
class UsedUp:
    """A limit that was reached: its name and value, and in how many seconds it allows a call."""

    limit: Literal["requests_per_minute", "tokens_per_minute", "tokens_per_day"]
    most: int
    wait_s: int


class Usage:
    """The usage under some limits in the last minute, and on this day of UTC."""

    def __init__(self, limits: UsageLimits, clock: SecondsClock) -> None:
        self._limits = limits
        self._clock = clock
        self._requests: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()
        self._tokens_of_minute = 0
        self._day = 0
        self._tokens_of_day = 0

    def used_up(self) -> UsedUp | None:
        """Return a limit that allows no call now, or None. The one that lasts longest is first."""
        now = self._clock()
        self._forget(now)
        limits = self._limits
        most = limits.tokens_per_day
        if most is not None and self._tokens_of_day >= most:
            return UsedUp("tokens_per_day", most, _whole_s(_DAY_S - now % _DAY_S))
        most = limits.tokens_per_minute
        if most is not None and self._tokens_of_minute >= most:
            return UsedUp("tokens_per_minute", most, _whole_s(self._until_below(most, now)))
        most = limits.requests_per_minute
        if most is not None and len(self._requests) >= most:
            left_s = self._requests[-most] + _MINUTE_S - now
            return UsedUp("requests_per_minute", most, _whole_s(left_s))
        return None

    def count_request(self) -> None:
        """Count a call."""
        if self._limits.requests_per_minute is not None:
            now = self._clock()
            self._forget(now)
            self._requests.append(now)

    def count_tokens(self, tokens: int) -> None:
        """Count what a call used."""
        now = self._clock()
        self._forget(now)
        if self._limits.tokens_per_minute is not None and tokens > 0:
            self._tokens.append((now, tokens))
            self._tokens_of_minute += tokens
        if self._limits.tokens_per_day is not None:
            self._tokens_of_day += tokens

    def _until_below(self, most: int, now: float) -> float:
        """Return in how many seconds the tokens of the minute are fewer than the limit."""
        left = self._tokens_of_minute
        for counted_at, tokens in self._tokens:
            left -= tokens
            if left < most:
                return counted_at + _MINUTE_S - now
        return _MINUTE_S

    def _forget(self, now: float) -> None:
        # The clock may be set back: entries with a later time would stay for that long.
        while self._requests and not _is_recent(self._requests[0], now):
            self._requests.popleft()
        while self._tokens and not _is_recent(self._tokens[0][0], now):
            self._tokens_of_minute -= self._tokens.popleft()[1]
        if (day := int(now // _DAY_S)) != self._day:
            self._day, self._tokens_of_day = day, 0


def _is_recent(counted_at: float, now: float) -> bool:
    return now - _MINUTE_S < counted_at <= now


def _whole_s(left_s: float) -> int:
    """Round up, so that a caller that waits so long is not refused again."""
    return max(1, int(left_s) + 1)
