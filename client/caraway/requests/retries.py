"""Decides whether to retry a failed request, and after what delay. No I/O."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError

LONGEST_DELAY_S = 30.0
_DELAYS = Delays(0.1, math.inf)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of retries, and the errors before them.

    `retries_broken` also retries after an incomplete response. The server may have carried out
    the request by then, so the request must be safe to repeat.
    """

    retries: int
    statuses: frozenset[int]
    retries_broken: bool = False
    codes: frozenset[str] = frozenset()
    """Codes of errors to retry after, whatever their status."""

    def delay_s(self, error: CarawayError, attempt: int) -> float | None:
        """Return the delay before the next attempt, or None to give up.

        A `Retry-After` of more than half a minute gives up: the caller decides whether to wait.
        """
        if attempt >= self.retries or not self._is_retryable(error):
            return None
        requested_s = error.retry_after_s if isinstance(error, ApiError) else None
        delay_s = _DELAYS.delay_s(attempt + 1) if requested_s is None else requested_s
        return delay_s if delay_s <= LONGEST_DELAY_S else None

    def _is_retryable(self, error: CarawayError) -> bool:
        if isinstance(error, ApiError):
            return error.status in self.statuses or error.code in self.codes
        if isinstance(error, BrokenResponseError):
            return self.retries_broken
        return isinstance(error, UnreachableError)


def reads(retries: int) -> RetryPolicy:
    """Return the policy for requests that change nothing."""
    return RetryPolicy(retries, frozenset({429, 503}))


def statements(retries: int, *, is_read: bool = True) -> RetryPolicy:
    """Return the policy for SQL before its first row.

    A statement that may write is sent again only if the server did not begin it.
    """
    if is_read:
        return RetryPolicy(retries, frozenset({429, 502, 503}), retries_broken=True)
    return RetryPolicy(retries, frozenset({429}))


def submissions(retries: int) -> RetryPolicy:
    """Return the policy for requests that are safe to repeat, such as those with a key."""
    return RetryPolicy(retries, frozenset({429, 502, 503, 504}), retries_broken=True)


def patient(retries: int) -> RetryPolicy:
    """Return the policy that survives a restart of the server: about half a minute."""
    return RetryPolicy(8 if retries else 0, frozenset({429, 502, 503, 504}), retries_broken=True)


def once() -> RetryPolicy:
    """Return the policy without retries."""
    return RetryPolicy(0, frozenset())


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `Retry-After`; runtimes do not send its date form."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
