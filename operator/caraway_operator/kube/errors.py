"""What the API answers when it does not do as asked.

CarawayError
└── KubeError            any of these; `is_lasting` says whether trying again is of no use
    ├── MissingError     there is no such object, or no such kind
    ├── ConflictError    the object is not as it was thought to be, or is there already
    │   └── LeavingError the object is being deleted: it can be made again when it is gone
    ├── RefusedError     it is not allowed: the same will be refused again
    │   └── InvalidError the object is invalid, or changes a field that cannot be changed
    ├── ExpiredError     a watch that must begin anew with a list
    └── AwayError        the API does not answer, or is too busy
"""

from caraway_core.errors import CarawayError


class KubeError(CarawayError):
    """The API did not do as asked."""

    is_lasting = False


class MissingError(KubeError):
    """There is no such object, or no such kind."""


class ConflictError(KubeError):
    """The object is not as it was thought to be, or is there already."""


class RefusedError(KubeError):
    """The same request would be refused again."""

    is_lasting = True


class LeavingError(ConflictError):
    """The object is being deleted."""


class InvalidError(RefusedError):
    """The object is invalid, or changes a field that cannot be changed."""


class ExpiredError(KubeError):
    """What was seen is too old to go on from."""


class AwayError(KubeError):
    """The API does not answer, or is too busy."""


def of_status(status: int, what: str, said: str) -> KubeError:
    """Return the error for an answer of 400 and above; `said` is what the API gave as reason."""
    text = f"Kubernetes answered {status} to {what}: {said}"
    match status:
        case 404:
            return MissingError(text)
        case 409:
            return ConflictError(text)
        case 410:
            return ExpiredError(text)
        case 429 | 500 | 502 | 503 | 504:
            return AwayError(text)
        case 422:
            return InvalidError(text)
        case 400 | 403 | 405 | 413 | 415:
            return RefusedError(text)
    return KubeError(text)
