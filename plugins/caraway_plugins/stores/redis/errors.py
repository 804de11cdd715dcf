"""Converts errors of the Redis client and server to errors with advice for users."""

from redis import exceptions

from caraway_core.errors import CarawayError, StateAwayError, StateFullError, StateUnsureError

_SIGN_IN = "set the correct user and password in the URL of the state store"
_REACH = "check that the server runs and that this host can reach it"
_RIGHTS = "give the user of the URL the commands and keys that docs/operate/README.md lists"
_MEMORY = "the server is out of memory: raise its maxmemory"
_REPLICA = "the server is a replica: set the primary in the URL"
_CLUSTER = "the server belongs to a Redis Cluster, which is not supported: use a single server"
_DISK = "the server cannot write to its disk: free space on it; see the server's log"
_TLS = "set the CA of the server's certificate with ?ca=FILE"
_UNKNOWN = "this is a defect of Caraway: please report it with this message"

# The first match is used; some of these classes derive from each other.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.AuthenticationError, _SIGN_IN),
    (exceptions.AuthorizationError, _SIGN_IN),
    (exceptions.AuthenticationWrongNumberOfArgsError, _SIGN_IN),
    (exceptions.NoPermissionError, _RIGHTS),
    (exceptions.ReadOnlyError, _REPLICA),
    (exceptions.OutOfMemoryError, _MEMORY),
    (exceptions.MasterDownError, _REACH),
    (exceptions.MovedError, _CLUSTER),
    (exceptions.AskError, _CLUSTER),
    (exceptions.ClusterDownError, _CLUSTER),
    (exceptions.ClusterCrossSlotError, _CLUSTER),
    (exceptions.ConnectionError, _REACH),
    (exceptions.TimeoutError, _REACH),
    (OSError, _REACH),
    (TimeoutError, _REACH),
)
_REPLIES = {"already authenticated": _SIGN_IN, "username-password": _SIGN_IN,
            "certificate": _TLS, "NOAUTH": _SIGN_IN, "WRONGPASS": _SIGN_IN,
            "MISCONF": _DISK, "READONLY": _REPLICA,
            "NOPERM": _RIGHTS, "OOM": _MEMORY}  # fmt: skip
_PASSING = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.BusyLoadingError,
    exceptions.MasterDownError,
    OSError,
)


def is_passing(exc: BaseException) -> bool:
    """Return whether a retry may succeed: the server is away or starting."""
    return isinstance(exc, _PASSING) and _advice(exc) not in (_SIGN_IN, _RIGHTS, _TLS)


def is_replica(answer: object) -> bool:
    """Return whether the server refused a write because it is not the primary, or no longer."""
    return isinstance(answer, exceptions.ReadOnlyError)


def explained(server: str, exc: BaseException) -> CarawayError:
    """Convert an error of the client to a CarawayError with advice."""
    advice = _advice(exc)
    text = f"state store {server}: {str(exc) or type(exc).__name__}; {advice}"
    if advice in (_MEMORY, _DISK):
        return StateFullError(text)
    # A replica may become the primary again, or the host name may move to the new primary.
    return StateAwayError(text) if is_passing(exc) or advice == _REPLICA else CarawayError(text)


def unsure(exc: CarawayError) -> CarawayError:
    """Return the error of a write that was sent and may have been applied."""
    if not isinstance(exc, StateAwayError) or isinstance(exc, StateFullError):
        return exc
    return StateUnsureError(exc.message, exc.retry_after_s)


def _advice(exc: BaseException) -> str:
    for word, advice in _REPLIES.items():
        if word in str(exc):
            return advice
    return next((advice for kind, advice in _ADVICE if isinstance(exc, kind)), _UNKNOWN)
