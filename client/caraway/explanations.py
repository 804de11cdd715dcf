"""What to do about an error, added to what the error says."""

from caraway.errors import RefusedError, UnreachableError
from caraway_core.errors import CarawayError

HINTS = {
    401: "the runtime wants an API key: pass --api-key KEY or set CARAWAY_API_KEY",
    403: "API keys that may write end in ':rw' in the manifest",
    404: "is the endpoint that of a Caraway runtime?",
    429: "the runtime is busy; try again later, or raise runtime.query.max_concurrent_queries",
    503: "the runtime is starting or stopping; look at `caraway ready --verbose`",
}


def explain(error: CarawayError) -> str:
    """The message for a person at a terminal."""
    match error:
        case UnreachableError() if "CERTIFICATE_VERIFY_FAILED" in error.reason:
            return (
                f"cannot trust {error.endpoint}: pass the authority that signed its certificate "
                f"with --cacert FILE ({error.reason})"
            )
        case UnreachableError():
            return (
                f"cannot reach {error.endpoint}: is `caraway run` up? "
                f"(start it with: caraway run MANIFEST; {error.reason})"
            )
        case RefusedError(status=404, is_worded=True):
            # Only a runtime words it so; the id is wrong, and not the endpoint.
            return error.message
        case RefusedError() if error.status in HINTS:
            return f"{error.message} ({error.status}); {HINTS[error.status]}"
        case _:
            return error.message
