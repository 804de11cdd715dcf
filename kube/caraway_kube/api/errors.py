"""Errors of the Kubernetes API.

CarawayError
└── KubeError                      any of these; `is_lasting` if a retry would fail too
    ├── ObjectNotFoundError        the object or its kind does not exist
    ├── ConflictError              the object has another version, or exists already
    │   └── ObjectTerminatingError the object is being deleted, and blocks a new one
    ├── RequestRejectedError       the request is not allowed
    │   └── ObjectInvalidError     the object is invalid, or changes an immutable field
    ├── ExpiredError               the version of a watch is too old
    └── ApiUnavailableError        the API server does not respond, or is overloaded
"""

from caraway_core.errors import CarawayError


class KubeError(CarawayError):
    """A request to the Kubernetes API failed."""

    is_lasting = False


class ObjectNotFoundError(KubeError):
    """The object or its kind does not exist."""


class ConflictError(KubeError):
    """The object has another version, or exists already."""


class RequestRejectedError(KubeError):
    """The request is not allowed; a retry would be rejected too."""

    is_lasting = True


class ObjectTerminatingError(ConflictError):
    """The object is being deleted."""


class ObjectInvalidError(RequestRejectedError):
    """The object is invalid, or changes an immutable field."""


class ExpiredError(KubeError):
    """The version is too old to watch from."""


class ApiUnavailableError(KubeError):
    """The API server does not respond, or is overloaded."""


def of_status(status: int, what: str, said: str) -> KubeError:
    """Return the error for a status of 400 or above. `said` is the message of the API server."""
    text = f"Kubernetes answered {status} to {what}: {said}"
    match status:
        case 404:
            return ObjectNotFoundError(text)
        case 409:
            return ConflictError(text)
        case 410:
            return ExpiredError(text)
        case 429 | 500 | 502 | 503 | 504:
            return ApiUnavailableError(text)
        case 422:
            return ObjectInvalidError(text)
        case 400 | 403 | 405 | 413 | 415:
            return RequestRejectedError(text)
    return KubeError(text)
