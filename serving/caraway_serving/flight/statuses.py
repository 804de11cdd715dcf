"""Turns errors into Flight statuses: one status for each kind of error."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import CarawayError, outcomes
from caraway_core.errors.outcomes import FailureKind
from caraway_serving.spans import Span

logger = logging.getLogger(__name__)
# gRPC sends messages as trailers, percent-encoded and once more in base64; clients refuse
# trailers of more than 8 KiB, and the user would read about that instead of the query.
_MOST_BYTES = 1_500
_NO_MEMORY = "there is no memory for the rows of this call at the moment; try again in a moment"


class StatusError(Exception):
    """An error that ends a call.

    Arrow appends Python's traceback to the message of what it sends, unless it cannot be
    formatted. `traceback` reads `__cause__`, so an error without one is sent bare.
    """

    @property
    def __cause__(self) -> NoReturn:  # type: ignore[override] # see above
        raise AttributeError("not for the wire")


class InvalidArgument(StatusError, pa.ArrowInvalid):  # type: ignore[misc] # pyarrow has no types
    """INVALID_ARGUMENT."""


class Unimplemented(StatusError, pa.ArrowNotImplementedError):  # type: ignore[misc] # untyped base
    """UNIMPLEMENTED."""


class NotFound(StatusError, pa.ArrowKeyError):  # type: ignore[misc] # pyarrow has no types
    """NOT_FOUND."""

    # KeyError words itself as the repr of its argument.
    __str__ = Exception.__str__


class Unauthenticated(StatusError, flight.FlightUnauthenticatedError):  # type: ignore[misc] # untyped base
    """UNAUTHENTICATED."""


class PermissionDenied(StatusError, flight.FlightUnauthorizedError):  # type: ignore[misc] # untyped base
    """PERMISSION_DENIED."""


class DeadlineExceeded(StatusError, flight.FlightTimedOutError):  # type: ignore[misc] # untyped base
    """DEADLINE_EXCEEDED."""


class CancelledStatus(StatusError, flight.FlightCancelledError):  # type: ignore[misc] # untyped base
    """CANCELLED."""


class Unavailable(StatusError, flight.FlightUnavailableError):  # type: ignore[misc] # untyped base
    """UNAVAILABLE."""


class NotFinished(Unavailable):
    """UNAVAILABLE, in place of FAILED_PRECONDITION, which Arrow has no way to send.

    To a gRPC client it means that just this call may be tried again, which is so.
    """


class Internal(StatusError, flight.FlightInternalError):  # type: ignore[misc] # untyped base
    """INTERNAL."""


STATUS: Mapping[FailureKind, type[StatusError]] = {
    FailureKind.INVALID: InvalidArgument,
    FailureKind.FORBIDDEN: PermissionDenied,
    FailureKind.NOT_FOUND: NotFound,
    FailureKind.CONFLICT: InvalidArgument,
    FailureKind.TIMED_OUT: DeadlineExceeded,
    FailureKind.CANCELLED: CancelledStatus,
    FailureKind.OVERLOADED: Unavailable,
    FailureKind.UNAVAILABLE: Unavailable,
    FailureKind.FULL: Unavailable,
    FailureKind.INTERNAL: Internal,
}


@contextmanager
def answered(span: Span) -> Iterator[None]:
    """Turn whatever goes wrong inside into an error for the wire.

    Raises:
        StatusError: always this, whatever was raised.
    """
    try:
        yield
    except StatusError as exc:
        # Names in it come from the client, and may have any length.
        if (message := str(exc)) != (short := bounded(message)):
            raise type(exc)(short) from None
        raise
    except CarawayError as exc:
        raise STATUS[outcomes.of(exc).kind](bounded(outcomes.words(exc))) from None
    except pa.ArrowMemoryError as exc:
        logger.error("no memory for a call", extra={"trace_id": span.trace_id, "error": str(exc)})
        raise Unavailable(_NO_MEMORY) from None
    except Exception:
        logger.exception("flight call failed", extra={"trace_id": span.trace_id})
        raise Internal(
            f"internal error; the log has the cause under trace id {span.trace_id}"
        ) from None


def bounded(message: str) -> str:
    """Cut a message so that it arrives."""
    encoded = message.encode()
    if len(encoded) <= _MOST_BYTES:
        return message
    return encoded[:_MOST_BYTES].decode(errors="ignore") + "..."
