"""Adds advice to error messages for users of the command line."""

from caraway.errors import ApiError, UnreachableError
from caraway_core.errors import CarawayError

HINTS = {
    401: "the runtime requires an API key: pass --api-key KEY or set CARAWAY_API_KEY",
    403: "API keys with write access end in ':rw' in the manifest",
    404: "is this the endpoint of a Caraway runtime?",
    429: "the runtime is busy; try again later, or raise runtime.query.max_concurrent_queries",
    503: "the runtime is starting or stopping; see `caraway ready --verbose`",
}


def explain(error: CarawayError) -> str:
    """Return the message to show on a terminal, with a hint where there is one."""
    match error:
        case UnreachableError() if "CERTIFICATE_VERIFY_FAILED" in error.reason:
            return (
                f"cannot verify the certificate of {error.endpoint}: pass the certificate of its "
                f"CA with --cacert FILE ({error.reason})"
            )
        case UnreachableError():
            return (
                f"cannot connect to {error.endpoint}: is the runtime running? "
                f"(start it with: caraway run MANIFEST; {error.reason})"
            )
        case ApiError(status=404, is_structured=True):
            # The body comes from a runtime, so the endpoint is right and the name or id wrong.
            return error.message
        case ApiError() if error.status in HINTS:
            return f"{error.message} ({error.status}); {HINTS[error.status]}"
        case _:
            return error.message
