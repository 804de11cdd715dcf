"""Maps the failure of a run to the error of its job."""

import logging

from caraway_core import errors
from caraway_core.errors import outcomes
from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import JobError

logger = logging.getLogger(__name__)


def explained(exc: BaseException, job_id: JobId, *, has_begun: bool) -> JobError:
    """Return the error of a job.

    Unexpected errors are logged in full and reported without internals.
    """
    if not isinstance(exc, errors.CarawayError):
        logger.error("job failed", exc_info=exc, extra={"job_id": job_id})
        return JobError("INTERNAL", f"internal error; the log has the cause under job {job_id}")
    code = outcomes.of(exc).job_code
    if code == "SUBMISSION_FAILED" and has_begun:
        # Planning succeeded, so the data caused the error.
        code = "EXECUTION_FAILED"
    return JobError(code, outcomes.words(exc))


def timed_out(timeout_s: float) -> errors.QueryTimeoutError:
    """Return the error of a job that exceeded its timeout."""
    return errors.QueryTimeoutError(
        f"the job did not finish within its timeout_seconds of {timeout_s:g} and was stopped; "
        "make it do less, or submit it with a longer timeout",
    )
