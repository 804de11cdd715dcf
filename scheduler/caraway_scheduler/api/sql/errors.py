"""What each of our errors is on the wire of the SQL routes: a status and plain text."""

from collections.abc import Mapping

from starlette.responses import PlainTextResponse, Response

from caraway_core import errors
from caraway_scheduler.api.bodies import BodyError
from caraway_scheduler.api.negotiation import NotAcceptableError

STATUS: Mapping[type[errors.CarawayError], int] = {
    errors.InvalidQueryError: 400,
    errors.ParametersError: 400,
    errors.QueryForbiddenError: 403,
    errors.QueryTimeoutError: 504,
    errors.QueryCancelledError: 499,
    errors.OverloadedError: 429,
    errors.OutOfMemoryQueryError: 500,
    errors.AnswerCutError: 500,
    errors.ExecutionError: 500,
    errors.ShuttingDownError: 503,
}


def response(exc: errors.CarawayError | BodyError | NotAcceptableError) -> Response:
    """Word an error for the client."""
    if isinstance(exc, BodyError):
        return PlainTextResponse(exc.message, exc.status)
    if isinstance(exc, NotAcceptableError):
        return PlainTextResponse(str(exc), 406)
    headers = {}
    if isinstance(exc, errors.OverloadedError):
        headers["Retry-After"] = str(exc.retry_after_s)
    return PlainTextResponse(exc.message, STATUS.get(type(exc), 500), headers)
