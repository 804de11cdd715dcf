"""The transitions of jobs: pure functions without I/O and without a clock.

  PENDING -> RUNNING -> SUCCEEDED -> CLOSED
     |          `-----> FAILED or CANCELLED
     `----------------> FAILED or CANCELLED

A process that takes over a job increments its epoch. The state store writes a job only at the
revision that was read, so only one of two processes succeeds.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from caraway_core.errors import CarawayError
from caraway_core.ids import JobId, PrincipalId
from caraway_scheduler.jobs.model import Job, JobError, JobRequest, JobStatus, Totals

MOST_ATTEMPTS = 5
"""The maximum number of starts: such a job probably crashes the processes that run it.
"""

ALLOWED: Mapping[JobStatus, frozenset[JobStatus]] = MappingProxyType(
    {
        "PENDING": frozenset({"RUNNING", "FAILED", "CANCELLED"}),
        "RUNNING": frozenset({"SUCCEEDED", "FAILED", "CANCELLED"}),
        "SUCCEEDED": frozenset({"CLOSED"}),
        "FAILED": frozenset(),
        "CANCELLED": frozenset(),
        "CLOSED": frozenset(),
    }
)
"""The statuses that may follow each status. A job that is taken over or restarted may also keep its
own.
"""

_MAY_HAVE_WRITTEN = (
    "the process that ran this statement was lost, so the statement may or may not have written; "
    "it was not repeated: look at the data before you submit it again"
)


class TransitionError(CarawayError):
    """The job's status does not allow the requested transition."""

    def __init__(self, job: Job, why: str) -> None:
        super().__init__(f"job '{job.job_id}' is {job.status}: {why}")
        self.job_id = job.job_id
        self.status = job.status


def submitted(
    job_id: JobId,
    principal: PrincipalId,
    is_read_only: bool,
    request: JobRequest,
    owner: str,
    now: datetime,
) -> Job:
    """Return a new job that `owner` runs."""
    return Job(job_id, principal, is_read_only, request, "PENDING", owner, 1, now)


def claimed(job: Job, owner: str, now: datetime) -> Job:
    """Return the job after another process took it over, which fences off the previous owner.

    A job that may already have written, or that was started too often, fails instead.

    Raises:
        TransitionError: the job is over.
    """
    if job.is_over:
        raise TransitionError(job, "it cannot be taken over")
    taken = replace(job, owner=owner, epoch=job.epoch + 1)
    if job.status == "RUNNING" and job.writes:
        return failed(taken, JobError("EXECUTION_FAILED", _MAY_HAVE_WRITTEN), now)
    if job.attempts >= MOST_ATTEMPTS:
        return failed(taken, JobError("INTERNAL", _began_too_often(job)), now)
    return taken


def began(job: Job, now: datetime, writes: bool) -> Job:
    """Return the job after its owner started or restarted it.

    Raises:
        TransitionError: the job is over or has no owner, or must not be started again.
    """
    _check_owned(job, "begin")
    if job.is_over:
        raise TransitionError(job, "it cannot begin")
    if job.writes:
        raise TransitionError(job, "a statement that writes is never started again")
    if job.attempts >= MOST_ATTEMPTS:
        raise TransitionError(job, _began_too_often(job))
    return replace(
        job,
        status="RUNNING",
        attempts=job.attempts + 1,
        started_at=job.started_at or max(now, job.created_at),
        writes=writes,
    )


def released(job: Job, *, gives_back: bool = False) -> Job:
    """Return the job without an owner, so that any process may take it at once.

    With `gives_back`, the current attempt is not counted, because the owner stops for unrelated
    reasons.

    Raises:
        TransitionError: the job is over.
    """
    if job.is_over:
        raise TransitionError(job, "it cannot be released")
    return replace(job, owner="", attempts=max(0, job.attempts - gives_back))


def succeeded(job: Job, totals: Totals, now: datetime, retention: timedelta) -> Job:
    """Return the job after it succeeded, with an answer that is kept for `retention`.

    Raises:
        TransitionError: the job is not running, or has no owner.
    """
    _check_owned(job, "succeed")
    over = _over(job, "SUCCEEDED", now)
    assert over.completed_at is not None
    return replace(over, totals=totals, expires_at=over.completed_at + retention)


def failed(job: Job, error: JobError, now: datetime) -> Job:
    """Return the job after it failed with `error`.

    Raises:
        TransitionError: the job is over.
    """
    return replace(_over(job, "FAILED", now), error=error)


def cancelled(job: Job, now: datetime) -> Job:
    """Return the job after it was cancelled.

    Raises:
        TransitionError: the job is over.
    """
    error = JobError("CANCELLED", "the query was cancelled")
    return replace(_over(job, "CANCELLED", now), error=error)


def closed(job: Job, now: datetime) -> Job:
    """Return the job after its answer expired.

    Raises:
        TransitionError: the job has no answer, or the answer has not expired.
    """
    _check_allowed(job, "CLOSED")
    if job.expires_at is not None and now < job.expires_at:
        raise TransitionError(job, f"its answer is kept until {job.expires_at.isoformat()}")
    return replace(job, status="CLOSED")


def closed_early(job: Job, now: datetime) -> Job:
    """Return the job after its answer was removed before its time.

    Raises:
        TransitionError: the job has no answer.
    """
    return closed(replace(job, expires_at=now), now)


def _over(job: Job, status: JobStatus, now: datetime) -> Job:
    _check_allowed(job, status)
    # Clocks of processes differ, but a job must not end before it started.
    return replace(job, status=status, completed_at=max(now, job.started_at or job.created_at))


def _check_allowed(job: Job, status: JobStatus) -> None:
    if status not in ALLOWED[job.status]:
        raise TransitionError(job, f"it cannot become {status}")


def _check_owned(job: Job, verb: str) -> None:
    if not job.owner:
        raise TransitionError(job, f"it cannot {verb} before a process has taken it")


def _began_too_often(job: Job) -> str:
    return (
        f"the query began {job.attempts} times and never finished: each process that ran "
        "it was lost; make it do less, or give the processes that run it more memory"
    )
