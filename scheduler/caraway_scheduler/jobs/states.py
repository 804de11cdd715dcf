"""What may become of a job: values in, values out, no I/O and no clock.

PENDING -> RUNNING -> SUCCEEDED -> CLOSED
   |          `-----> FAILED or CANCELLED
   `----------------> FAILED or CANCELLED

A process that takes a job raises its epoch. The state store, which writes a job only at the
revision that was read, sees to it that of two processes one gets it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from caraway_core.errors import CarawayError
from caraway_core.ids import JobId, PrincipalId
from caraway_scheduler.jobs.model import Job, JobError, JobRequest, JobStatus, Totals

MOST_ATTEMPTS = 5
"""A job that began so often has brought down whatever ran it, and is not begun again."""

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
"""Which status may follow which; a job that is taken or begun again may also keep its own."""

_MAY_HAVE_WRITTEN = (
    "the process that ran this statement was lost, so the statement may have written or not; it "
    "was not repeated: look at the data before you submit it again"
)


class TransitionError(CarawayError):
    """A job cannot go from the state that it is in to another."""

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
    """Return a new job, which `owner` is to run."""
    return Job(job_id, principal, is_read_only, request, "PENDING", owner, 1, now)


def claimed(job: Job, owner: str, now: datetime) -> Job:
    """Return the job as another process has taken it, which fences off the one before.

    One that may already have written, or that began too often, has failed instead.

    Raises:
        TransitionError: it is over.
    """
    if job.is_over:
        raise TransitionError(job, "there is nothing left to take over")
    taken = replace(job, owner=owner, epoch=job.epoch + 1)
    if job.status == "RUNNING" and job.writes:
        return failed(taken, JobError("EXECUTION_FAILED", _MAY_HAVE_WRITTEN), now)
    if job.attempts >= MOST_ATTEMPTS:
        return failed(taken, JobError("INTERNAL", _began_too_often(job)), now)
    return taken


def began(job: Job, now: datetime, writes: bool) -> Job:
    """Return the job as its owner begins to run it, for the first time or again.

    Raises:
        TransitionError: it is over, nobody owns it, or it may not begin once more.
    """
    _check_owned(job, "begin")
    if job.is_over:
        raise TransitionError(job, "it cannot begin")
    if job.writes:
        raise TransitionError(job, "a statement that writes is never begun again")
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

    An owner that `gives_back` the attempt that it began stops for reasons of its own, which are
    not held against the job.

    Raises:
        TransitionError: it is over.
    """
    if job.is_over:
        raise TransitionError(job, "nobody has to run it any more")
    return replace(job, owner="", attempts=max(0, job.attempts - gives_back))


def succeeded(job: Job, totals: Totals, now: datetime, retention: timedelta) -> Job:
    """Return the job with its answer, which is kept for `retention`.

    Raises:
        TransitionError: it is not running, or nobody owns it.
    """
    _check_owned(job, "succeed")
    over = _over(job, "SUCCEEDED", now)
    assert over.completed_at is not None
    return replace(over, totals=totals, expires_at=over.completed_at + retention)


def failed(job: Job, error: JobError, now: datetime) -> Job:
    """Return the job with what went wrong.

    Raises:
        TransitionError: it is over.
    """
    return replace(_over(job, "FAILED", now), error=error)


def cancelled(job: Job, now: datetime) -> Job:
    """Return the job as somebody stopped it.

    Raises:
        TransitionError: it is over.
    """
    error = JobError("CANCELLED", "the query was cancelled")
    return replace(_over(job, "CANCELLED", now), error=error)


def closed(job: Job, now: datetime) -> Job:
    """Return the job without its answer, whose time has passed.

    Raises:
        TransitionError: it has no answer, or keeps it for longer.
    """
    _check_allowed(job, "CLOSED")
    if job.expires_at is not None and now < job.expires_at:
        raise TransitionError(job, f"its answer is kept until {job.expires_at.isoformat()}")
    return replace(job, status="CLOSED")


def _over(job: Job, status: JobStatus, now: datetime) -> Job:
    _check_allowed(job, status)
    # Clocks of processes differ; a job never ends before it began.
    return replace(job, status=status, completed_at=max(now, job.started_at or job.created_at))


def _check_allowed(job: Job, status: JobStatus) -> None:
    if status not in ALLOWED[job.status]:
        raise TransitionError(job, f"it cannot become {status}")


def _check_owned(job: Job, verb: str) -> None:
    if not job.owner:
        raise TransitionError(job, f"it cannot {verb} before a process has taken it")


def _began_too_often(job: Job) -> str:
    return (
        f"the query began {job.attempts} times and never came to an end: each process that ran "
        "it was lost meanwhile; make it do less, or give the processes that run it more memory"
    )
