"""What each of our errors is on the wire of the query routes: a status and JSON."""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import ParamSpec

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_core import errors
from caraway_scheduler.api.bodies import BodyError
from caraway_scheduler.api.negotiation import NotAcceptableError
from caraway_scheduler.api.queries.submissions import SubmissionError
from caraway_scheduler.jobs.model import JobStatus

STATUS: Mapping[type[errors.CarawayError], int] = {
    errors.JobConflictError: 422,
    errors.JobNotFoundError: 404,
    errors.InvalidQueryError: 400,
    errors.QueryForbiddenError: 403,
    errors.OverloadedError: 429,
    errors.StateAwayError: 503,
    errors.ShuttingDownError: 503,
}
"""What is not here is 500."""
P = ParamSpec("P")
_CLIENT_GONE = Response(status_code=499)


class RefusedError(Exception):
    """Something that cannot be had, or not now; `job_status` says why where that is told."""

    def __init__(self, status: int, message: str, job_status: JobStatus | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.job_status = job_status


def worded(handler: Callable[P, Awaitable[Response]]) -> Callable[P, Awaitable[Response]]:
    """Answer what a route raises."""

    @functools.wraps(handler)
    async def wording(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await handler(*args, **kwargs)
        except (
            errors.CarawayError,
            BodyError,
            NotAcceptableError,
            RefusedError,
            SubmissionError,
        ) as exc:
            return _response(exc)
        except ClientDisconnect:
            return _CLIENT_GONE

    return wording


def of(exc: errors.CarawayError) -> int:
    return next((status for kind, status in STATUS.items() if isinstance(exc, kind)), 500)


def _response(
    exc: errors.CarawayError | BodyError | NotAcceptableError | RefusedError | SubmissionError,
) -> Response:
    headers = {}
    match exc:
        case errors.OverloadedError() | errors.StateAwayError():
            headers["retry-after"] = str(exc.retry_after_s)
            return JSONResponse({"error": exc.message}, of(exc), headers)
        case errors.CarawayError():
            return JSONResponse({"error": exc.message}, of(exc))
        case NotAcceptableError():
            return JSONResponse({"error": str(exc)}, 406)
        case RefusedError(job_status=str(job_status)):
            return JSONResponse({"error": exc.message, "status": job_status}, exc.status)
        case _:
            return JSONResponse({"error": exc.message}, exc.status)
