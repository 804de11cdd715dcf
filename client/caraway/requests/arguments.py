"""Checks what callers pass, so that a mistake is named before anything is sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from caraway_core.errors import CarawayError, ParametersError

# A mapping binds parameters by name, a sequence by position.
Parameters = Mapping[str, Any] | Sequence[Any]
QUERY_STATUSES = (
    "pending",
    "queued",
    "running",
    "succeeded",
    "completed",
    "failed",
    "cancelled",
    "closed",
)


def header(name: str, text: str) -> str:
    """Return a text that is sent in a header.

    Raises:
        CarawayError: a header cannot hold it.
    """
    _be(name, text, str)
    if not text.isascii() or not (text.isprintable() or not text):
        raise CarawayError(
            f"{name} may have printable ASCII characters only; does it end with a line break?"
        )
    return text


def retries(count: int) -> int:
    """Return how often to try again.

    Raises:
        ValueError: it is negative.
    """
    _be("max_retries", count, int)
    if count < 0:
        raise ValueError("retries must be 0 or more")
    return count


def query_status(status: str) -> str:
    """Return a status by which queries can be listed; a server lists all for an unknown one.

    Raises:
        CarawayError: there is no such status.
    """
    _be("status", status, str)
    if status and status.strip().lower() not in QUERY_STATUSES:
        raise CarawayError(
            f"there is no status {status!r}; a query is one of {', '.join(QUERY_STATUSES)}"
        )
    return status


# Any: this checks what a caller passes.
def statement(sql: Any, parameters: object = None) -> None:
    """Check a statement and the kind of its parameters.

    Raises:
        TypeError: one is of another kind.
        CarawayError: the text cannot be sent.
    """
    _be("the statement", sql, str)
    try:
        sql.encode()
    except UnicodeEncodeError as exc:
        raise CarawayError(f"the statement is not valid Unicode: {exc}") from exc
    if parameters is None or isinstance(parameters, Mapping):
        return
    if isinstance(parameters, str | bytes | bytearray) or not isinstance(parameters, Sequence):
        raise ParametersError(
            "parameters must be a mapping, such as {'year': 2024}, or a list, such as [2024]; "
            f"this is a {type(parameters).__name__}"
        )


def _be(name: str, given: object, kind: type) -> None:
    if not isinstance(given, kind) or isinstance(given, bool):
        raise TypeError(f"{name} must be of type {kind.__name__}, not {type(given).__name__}")
