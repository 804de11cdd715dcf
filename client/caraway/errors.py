"""Errors raised by the client.

CarawayError
├── InvalidEndpointError   the endpoint is not a valid URL
├── UnreachableError       no connection to the endpoint
├── BrokenResponseError    the response was incomplete, late or malformed
├── NotInstalledHereError  a conversion needs a package that is not installed
└── ApiError               the server returned an error status
"""

from collections.abc import Mapping
from typing import Any

from caraway_core.errors import CarawayError


class InvalidEndpointError(CarawayError):
    """The endpoint is not a valid http or https URL."""


class UnreachableError(CarawayError):
    """No connection could be made to `endpoint`."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"cannot connect to {endpoint}: {reason}")
        self.endpoint = endpoint
        self.reason = reason


class BrokenResponseError(CarawayError):
    """The response was incomplete, timed out, or did not have the expected form."""


class NotInstalledHereError(CarawayError):
    """A conversion needs a package that is not installed; the message names it."""


class ApiError(CarawayError):
    """The server returned an error status. The message is the server's own text.

    `status` is an HTTP status, also for errors that came over Flight.

    `is_structured` is true if the body was an error object, as runtimes send it. A proxy or
    another server sends something else.

    `code` is a word for programs, and `details` says what is wrong with which field, if the server
    sends them, as a management service does.
    """

    # Any: JSON.
    def __init__(
        self,
        status: int,
        text: str,
        retry_after_s: float | None = None,
        is_structured: bool = False,
        *,
        code: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(text or f"the server returned status {status} without a message")
        self.status = status
        self.is_structured = is_structured
        self.retry_after_s = retry_after_s
        self.code = code
        self.details = details or {}
