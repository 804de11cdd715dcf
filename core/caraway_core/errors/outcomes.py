"""Maps each error class to its meaning for clients, for every wire protocol.

A wire maps `FailureKind` to its own status codes, and takes `may_retry` and `job_code` from here.
A class without a row inherits the row of its nearest base class. Every class in `errors` needs a
row; error classes of other packages derive from one of those.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from caraway_core import errors

logger = logging.getLogger(__name__)


class FailureKind(Enum):
    """The kind of a failure, from the client's point of view."""

    INVALID = "invalid"
    """The request is wrong; only another request can succeed."""
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    CONFLICT = "conflict"
    """The idempotency key was used for a different request."""
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    OVERLOADED = "overloaded"
    """There is too much work; the same request can succeed later."""
    UNAVAILABLE = "unavailable"
    """A component is unavailable or still starting; the same request can succeed later."""
    FULL = "full"
    """A disk or a store is full; the same request can succeed once space is free."""
    INTERNAL = "internal"
    """The runtime or a source failed."""


JobCode = Literal[
    "SCHEDULER_UNAVAILABLE",
    "SUBMISSION_FAILED",
    "EXECUTION_FAILED",
    "FETCHING_RESULTS_FAILED",
    "CANCELLED",
    "PARAMETER_BINDING_FAILED",
    "NOT_FOUND",
    "INTERNAL",
    "TIMEOUT",
]


@dataclass(frozen=True, slots=True)
class FailureOutcome:
    """One row of the table."""

    kind: FailureKind
    job_code: JobCode
    may_retry: bool = False
    """True if the same request may be retried."""


_INTERNAL = FailureOutcome(FailureKind.INTERNAL, "INTERNAL")
_FAILED = FailureOutcome(FailureKind.INTERNAL, "EXECUTION_FAILED")
_INVALID = FailureOutcome(FailureKind.INVALID, "SUBMISSION_FAILED")
_AWAY = FailureOutcome(FailureKind.UNAVAILABLE, "SCHEDULER_UNAVAILABLE", may_retry=True)
_FULL = FailureOutcome(FailureKind.FULL, "EXECUTION_FAILED", may_retry=True)
_BROKEN_OFF = FailureOutcome(FailureKind.UNAVAILABLE, "EXECUTION_FAILED", may_retry=True)

TABLE: Mapping[type[errors.CarawayError], FailureOutcome] = {
    errors.CarawayError: _INTERNAL,
    errors.ManifestError: _INTERNAL,
    errors.UnknownPluginError: _INTERNAL,
    errors.NotInstalledError: _INTERNAL,
    errors.DatasetError: _FAILED,
    errors.InvalidRequestError: _INVALID,
    errors.NotFoundError: FailureOutcome(FailureKind.NOT_FOUND, "NOT_FOUND"),
    errors.ModelError: _FAILED,
    errors.ModelInputError: _INVALID,
    errors.ModelAwayError: _BROKEN_OFF,
    errors.ToolError: _FAILED,
    errors.JobNotFoundError: FailureOutcome(FailureKind.NOT_FOUND, "NOT_FOUND"),
    errors.JobConflictError: FailureOutcome(FailureKind.CONFLICT, "SUBMISSION_FAILED"),
    errors.DeadlineError: FailureOutcome(FailureKind.TIMED_OUT, "TIMEOUT", may_retry=True),
    errors.UnavailableError: _AWAY,
    errors.StateAwayError: _AWAY,
    errors.StateFullError: FailureOutcome(
        FailureKind.FULL, "SCHEDULER_UNAVAILABLE", may_retry=True
    ),
    errors.StateUnsureError: _AWAY,
    errors.ShuttingDownError: _AWAY,
    errors.ExecutorLostError: _BROKEN_OFF,
    errors.PlanLostError: _BROKEN_OFF,
    errors.PartLostError: _BROKEN_OFF,
    errors.CatalogMovedError: _BROKEN_OFF,
    errors.NotDistributableError: _INTERNAL,
    errors.QueryError: _FAILED,
    errors.InvalidQueryError: _INVALID,
    errors.ParametersError: FailureOutcome(FailureKind.INVALID, "PARAMETER_BINDING_FAILED"),
    errors.TableNotFoundError: _INVALID,
    errors.DatasetLoadingError: _AWAY,
    errors.ModelNotReadyError: _BROKEN_OFF,
    errors.SourceNotReadError: _INVALID,
    errors.MovedOnError: _AWAY,
    errors.QueryForbiddenError: FailureOutcome(FailureKind.FORBIDDEN, "SUBMISSION_FAILED"),
    errors.StatementRefusedError: FailureOutcome(FailureKind.INVALID, "EXECUTION_FAILED"),
    errors.QueryTimeoutError: FailureOutcome(FailureKind.TIMED_OUT, "TIMEOUT"),
    errors.QueryCancelledError: FailureOutcome(FailureKind.CANCELLED, "CANCELLED"),
    errors.OverloadedError: FailureOutcome(
        FailureKind.OVERLOADED, "SCHEDULER_UNAVAILABLE", may_retry=True
    ),
    errors.OutOfMemoryQueryError: _FAILED,
    errors.AnswerCutError: _BROKEN_OFF,
    errors.ResultTooLargeError: FailureOutcome(FailureKind.INVALID, "EXECUTION_FAILED"),
    errors.ExecutionError: _FAILED,
    errors.DatasetDamagedError: _BROKEN_OFF,
    errors.ExecutorsLostError: _BROKEN_OFF,
    errors.DiskFullError: _FULL,
    errors.ResultStoreError: FailureOutcome(FailureKind.INTERNAL, "FETCHING_RESULTS_FAILED"),
    errors.ResultStoreAwayError: FailureOutcome(
        FailureKind.UNAVAILABLE, "FETCHING_RESULTS_FAILED", may_retry=True
    ),
    errors.DamagedChunkError: FailureOutcome(FailureKind.INTERNAL, "FETCHING_RESULTS_FAILED"),
}
_RETRY_AFTER_S = 2

_WORDS: Mapping[type[errors.CarawayError], tuple[str, str]] = {
    errors.StateFullError: (
        "the state store has no room",
        "send the request again once there is room (the log of the scheduler has the cause)",
    ),
    errors.StateUnsureError: (
        "the state store did not respond to a write, which may have been done or not",
        "look before you send the request again, unless it is harmless twice or has an "
        "Idempotency-Key (the log of the scheduler has the cause)",
    ),
    errors.StateAwayError: (
        "the state store does not respond",
        "send the request again (the log of the scheduler has the cause)",
    ),
    errors.PartLostError: (
        "rows of the query were lost with the process that held them",
        "run the query again",
    ),
}
"""The cause and the remedy of errors that hold words of a store or of Ray, addresses and
paths: those are for operators."""


def of(exc: errors.CarawayError) -> FailureOutcome:
    """Return the outcome of an error, from its class or its nearest base class with a row."""
    return next(TABLE[kind] for kind in type(exc).__mro__ if kind in TABLE)


def words(exc: errors.CarawayError) -> str:
    """Return the message of an error for clients; log what the message leaves out."""
    told = _told(exc)
    if told is None:
        return exc.message
    logger.warning("request failed", extra={"cause": exc.message})
    return "; ".join(told)


def cause(exc: errors.CarawayError) -> str:
    """Return the cause of an error, for work that continues without the client."""
    told = _told(exc)
    return exc.message if told is None else told[0]


def _told(exc: errors.CarawayError) -> tuple[str, str] | None:
    return next((_WORDS[kind] for kind in type(exc).__mro__ if kind in _WORDS), None)


def retry_after_s(exc: errors.CarawayError) -> int | None:
    """Return the seconds to wait before a retry, or None if the request must not be retried."""
    if not of(exc).may_retry:
        return None
    return int(getattr(exc, "retry_after_s", _RETRY_AFTER_S))
