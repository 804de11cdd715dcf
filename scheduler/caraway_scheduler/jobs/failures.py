"""Turns the failure of a run into the error of its job."""

import logging

from caraway_core import errors, outcomes
from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import JobError

logger = logging.getLogger(__name__)


def explained(exc: BaseException, job_id: JobId, *, has_begun: bool) -> JobError:
    """Return the error of a job. What is not ours is logged, and told without its insides."""
    if not isinstance(exc, errors.CarawayError):
        logger.error("job failed", exc_info=exc, extra={"job_id": job_id})
        return JobError("INTERNAL", f"internal error; the log has the cause under job {job_id}")
    code = outcomes.of(exc).job_code
    if code == "SUBMISSION_FAILED" and has_begun:
        # It was planned well; its data cannot be computed with.
        code = "EXECUTION_FAILED"
    return JobError(code, outcomes.words(exc))


def timed_out(timeout_s: float) -> errors.QueryTimeoutError:
    return errors.QueryTimeoutError(
        f"the job did not finish within its timeout_seconds of {timeout_s:g} and was stopped; "
        "make it do less, or submit it with more time",
    )
