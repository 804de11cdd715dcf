"""When a failed request is worth another try, and how long to wait before it; no I/O."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from caraway.errors import BrokenAnswerError, RefusedError, UnreachableError
from caraway_core.backoff import Delays
from caraway_core.errors import CarawayError

LONGEST_DELAY_S = 30.0
_DELAYS = Delays(0.1, math.inf)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try again, and which refusals are worth it.

    `tries_broken` says that also an answer which broke off is asked for again; the server may
    have done what it was asked to by then.
    """

    retries: int
    statuses: frozenset[int]
    tries_broken: bool = False

    def delay_s(self, error: CarawayError, attempt: int) -> float | None:
        """How long to wait before another try; None means give up.

        A server that asks for more than half a minute is not waited for: the caller is told.
        """
        if attempt >= self.retries or not self._may_pass(error):
            return None
        asked_s = error.retry_after_s if isinstance(error, RefusedError) else None
        delay_s = _DELAYS.delay_s(attempt + 1) if asked_s is None else asked_s
        return delay_s if delay_s <= LONGEST_DELAY_S else None

    def _may_pass(self, error: CarawayError) -> bool:
        if isinstance(error, RefusedError):
            return error.status in self.statuses
        if isinstance(error, BrokenAnswerError):
            return self.tries_broken
        return isinstance(error, UnreachableError)


def reads(retries: int) -> RetryPolicy:
    """For requests that change nothing."""
    return RetryPolicy(retries, frozenset({429, 503}))


def statements(retries: int) -> RetryPolicy:
    """For SQL: only what the server certainly did not start is sent again, at most twice."""
    return RetryPolicy(min(retries, 2), frozenset({429}))


def submissions(retries: int) -> RetryPolicy:
    """For requests with a key by which the server knows them again."""
    return RetryPolicy(retries, frozenset({429, 502, 503, 504}), tries_broken=True)


def patient(retries: int) -> RetryPolicy:
    """For waiting through the restart of a server: up to half a minute, if at all."""
    return RetryPolicy(8 if retries else 0, frozenset({429, 502, 503, 504}), tries_broken=True)


def once() -> RetryPolicy:
    """For questions whose answer may be "no"."""
    return RetryPolicy(0, frozenset())


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that `Retry-After` asks for; its date form is not used by runtimes."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
