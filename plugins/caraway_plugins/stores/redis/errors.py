"""What the server and the connection report, said so that the user knows what to do."""

from redis import exceptions

from caraway_core.errors import CarawayError, StateAwayError, StateFullError, StateUnsureError

_SIGN_IN = "put the right user and password in the URL of the state store"
_REACH = "check that the server runs, and that this machine can reach it"
_RIGHTS = "give the user of the URL the commands and keys that docs/operate/README.md lists"
_MEMORY = "the server is out of memory: raise its maxmemory"
_REPLICA = "the server is a replica: name the primary in the URL"
_CLUSTER = "the server belongs to a Redis Cluster, which is not supported: name a single server"
_DISK = "the server cannot write to its disk: free space on it; see the server's log"
_TLS = "name the authority that signed the server's certificate with ?ca=FILE"
_UNKNOWN = "this is a defect of Caraway: please report it with this message"

# The first that fits decides: some of these are derived from each other.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.AuthenticationError, _SIGN_IN),
    (exceptions.AuthorizationError, _SIGN_IN),
    (exceptions.AuthenticationWrongNumberOfArgsError, _SIGN_IN),
    (exceptions.NoPermissionError, _RIGHTS),
    (exceptions.ReadOnlyError, _REPLICA),
    (exceptions.OutOfMemoryError, _MEMORY),
    (exceptions.MovedError, _CLUSTER),
    (exceptions.AskError, _CLUSTER),
    (exceptions.ClusterDownError, _CLUSTER),
    (exceptions.ClusterCrossSlotError, _CLUSTER),
    (exceptions.MasterDownError, _REACH),
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
    """Whether another attempt may succeed: the server is away, or is starting."""
    return isinstance(exc, _PASSING) and _advice(exc) not in (_SIGN_IN, _RIGHTS, _TLS)


def explained(server: str, exc: BaseException) -> CarawayError:
    """Turn an error of the client into ours, with what to do."""
    advice = _advice(exc)
    text = f"state store {server}: {str(exc) or type(exc).__name__}; {advice}"
    if advice in (_MEMORY, _DISK):
        return StateFullError(text)
    # A replica becomes the primary again, or the name in the URL moves to the new one.
    return StateAwayError(text) if is_passing(exc) or advice == _REPLICA else CarawayError(text)


def unsure(exc: CarawayError) -> CarawayError:
    """Turn the error of a write that was sent, and may have been done, into one that says so."""
    if not isinstance(exc, StateAwayError) or isinstance(exc, StateFullError):
        return exc
    return StateUnsureError(exc.message, exc.retry_after_s)


def _advice(exc: BaseException) -> str:
    for word, advice in _REPLIES.items():
        if word in str(exc):
            return advice
    return next((advice for kind, advice in _ADVICE if isinstance(exc, kind)), _UNKNOWN)
