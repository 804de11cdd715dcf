"""What can go wrong between a client and a runtime.

CarawayError
├── InvalidEndpointError the text is not the address of a runtime
├── UnreachableError     nobody answers at the endpoint
├── BrokenAnswerError    the answer began and then stopped, or it was not what was asked for
└── RefusedError         the server answered with an error; carries the status and its text
"""

from caraway_core.errors import CarawayError


class InvalidEndpointError(CarawayError):
    """The text is not the address of a runtime."""


class UnreachableError(CarawayError):
    """Nobody answers at `endpoint`."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"cannot reach {endpoint}: {reason}")
        self.endpoint = endpoint
        self.reason = reason


class BrokenAnswerError(CarawayError):
    """The answer began and then stopped, or it was not what was asked for."""


class RefusedError(CarawayError):
    """The server answered with an error; the message is the server's own text.

    `is_worded` says that it came in the form in which runtimes word errors.
    """

    def __init__(
        self,
        status: int,
        text: str,
        retry_after_s: float | None = None,
        is_worded: bool = False,
    ) -> None:
        super().__init__(text or f"the server answered {status} without a reason")
        self.status = status
        self.is_worded = is_worded
        self.retry_after_s = retry_after_s
