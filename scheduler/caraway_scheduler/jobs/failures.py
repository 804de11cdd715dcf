"""What a failed run means to the client of a job."""

import logging

from caraway_core import errors
from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import ErrorCode, JobError

logger = logging.getLogger(__name__)

# The first that fits decides: some of these are derived from each other.
_CODES: tuple[tuple[type[errors.CarawayError], ErrorCode], ...] = (
    (errors.ParametersError, "PARAMETER_BINDING_FAILED"),
    (errors.InvalidQueryError, "SUBMISSION_FAILED"),
    (errors.QueryForbiddenError, "SUBMISSION_FAILED"),
    (errors.QueryTimeoutError, "TIMEOUT"),
    (errors.QueryCancelledError, "CANCELLED"),
    (errors.OverloadedError, "SCHEDULER_UNAVAILABLE"),
    (errors.ShuttingDownError, "SCHEDULER_UNAVAILABLE"),
    (errors.ResultStoreError, "FETCHING_RESULTS_FAILED"),
    (errors.QueryError, "EXECUTION_FAILED"),
)


def explained(exc: BaseException, job_id: JobId, *, has_begun: bool) -> JobError:
    """Return the error of a job. What is not ours is logged, and told without its insides."""
    if not isinstance(exc, errors.CarawayError):
        logger.error("job failed", exc_info=exc, extra={"job_id": job_id})
        return JobError("INTERNAL", f"internal error; the log has the cause under job {job_id}")
    code: ErrorCode = next((code for kind, code in _CODES if isinstance(exc, kind)), "INTERNAL")
    if code == "SUBMISSION_FAILED" and has_begun:
        # It was planned well; its data cannot be computed with.
        code = "EXECUTION_FAILED"
    return JobError(code, exc.message)


def timed_out(timeout_s: float) -> errors.QueryTimeoutError:
    return errors.QueryTimeoutError(
        f"the job did not finish within its timeout_seconds of {timeout_s:g} and was stopped; "
        "make it do less, or submit it with more time",
    )
