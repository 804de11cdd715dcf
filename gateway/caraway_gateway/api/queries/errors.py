"""Converts the errors of the query routes to JSON responses."""

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_core.errors import CarawayError
from caraway_scheduler.jobs.model import JobStatus
from caraway_serving import errors
from caraway_serving.errors import RefusedRequestError

P = ParamSpec("P")


class NoResultsError(RefusedRequestError):
    """The results of a job are unavailable, now or for good; `job_status` says why."""

    def __init__(self, status: int, message: str, job_status: JobStatus) -> None:
        super().__init__(status, message)
        self.job_status = job_status


def worded(handler: Callable[P, Awaitable[Response]]) -> Callable[P, Awaitable[Response]]:
    """Wrap a route handler, and convert the errors that it raises to responses."""

    @functools.wraps(handler)
    async def wording(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await handler(*args, **kwargs)
        except NoResultsError as exc:
            return errors.as_error(exc, status=exc.job_status)
        except (CarawayError, RefusedRequestError) as exc:
            return errors.as_error(exc)
        except ClientDisconnect:
            return errors.CLIENT_GONE

    return wording
