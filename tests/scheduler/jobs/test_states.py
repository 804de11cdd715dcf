"""Each transition, and invariants after any sequence of them by several processes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from caraway_core.ids import PUBLIC, JobId
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import TERMINAL, Job, JobError, JobRequest, JobStatus, Totals
from caraway_scheduler.jobs.states import ALLOWED, MOST_ATTEMPTS, TransitionError

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(seconds=30)
RETENTION = timedelta(hours=12)
TOTALS = Totals(rows=3, size_bytes=100, chunks=1)
FAILURE = JobError("EXECUTION_FAILED", "the disk is gone")

PENDING = states.submitted(JobId("A-1"), PUBLIC, False, JobRequest("SELECT 1"), "one", START)
RUNNING = states.began(PENDING, START, writes=False)
WRITING = states.began(PENDING, START, writes=True)
SUCCEEDED = states.succeeded(RUNNING, TOTALS, LATER, RETENTION)
FAILED = states.failed(RUNNING, FAILURE, LATER)
CANCELLED = states.cancelled(RUNNING, LATER)
CLOSED = states.closed(SUCCEEDED, LATER + RETENTION)

TRANSITIONS: dict[str, Callable[[Job], Job]] = {
    "claimed": lambda job: states.claimed(job, "two", LATER),
    "began": lambda job: states.began(job, LATER, writes=False),
    "released": states.released,
    "succeeded": lambda job: states.succeeded(job, TOTALS, LATER, RETENTION),
    "failed": lambda job: states.failed(job, FAILURE, LATER),
    "cancelled": lambda job: states.cancelled(job, LATER),
    "closed": lambda job: states.closed(job, LATER + RETENTION),
}
POSSIBLE = {
    "PENDING": {"claimed", "began", "released", "failed", "cancelled"},
    "RUNNING": {"claimed", "began", "released", "succeeded", "failed", "cancelled"},
    "SUCCEEDED": {"closed"},
    "FAILED": set[str](),
    "CANCELLED": set[str](),
    "CLOSED": set[str](),
}
EVERY = (PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED, CLOSED)


@pytest.mark.parametrize("job", EVERY, ids=lambda job: job.status)
@pytest.mark.parametrize("name", TRANSITIONS)
def test_only_allowed_transitions_happen(job: Job, name: str) -> None:
    if name in POSSIBLE[job.status]:
        TRANSITIONS[name](job)
        return
    with pytest.raises(TransitionError, match=f"job 'A-1' is {job.status}"):
        TRANSITIONS[name](job)


def test_terminal_states_lead_nowhere_but_to_expiry() -> None:
    assert {status for status in TERMINAL if ALLOWED[status]} == {"SUCCEEDED"}
    assert ALLOWED["SUCCEEDED"] == {"CLOSED"}


def test_a_new_job_waits_for_its_owner() -> None:
    assert (PENDING.status, PENDING.owner, PENDING.epoch) == ("PENDING", "one", 1)
    assert (PENDING.attempts, PENDING.created_at, PENDING.started_at) == (0, START, None)


@pytest.mark.parametrize("job", [PENDING, RUNNING, states.released(RUNNING)])
def test_taking_a_job_raises_its_epoch_and_keeps_its_status(job: Job) -> None:
    taken = states.claimed(job, "two", LATER)
    assert taken == replace(job, owner="two", epoch=2)


def test_a_job_that_writes_is_not_repeated() -> None:
    taken = states.claimed(WRITING, "two", LATER)
    assert (taken.status, taken.epoch, taken.completed_at) == ("FAILED", 2, LATER)
    assert taken.error is not None
    assert taken.error.code == "EXECUTION_FAILED"
    assert "may or may not have written; it was not repeated" in taken.error.message
    with pytest.raises(TransitionError, match="never started again"):
        states.began(WRITING, LATER, writes=True)


def test_a_released_job_that_writes_is_not_repeated_either() -> None:
    assert states.claimed(states.released(WRITING), "two", LATER).status == "FAILED"


def test_a_job_that_never_finishes_fails() -> None:
    job = PENDING
    for number in range(MOST_ATTEMPTS):
        job = states.began(states.claimed(job, f"process {number}", LATER), LATER, writes=False)
    with pytest.raises(TransitionError, match="began 5 times"):
        states.began(job, LATER, writes=False)
    job = states.claimed(job, "last", LATER)
    assert job.status == "FAILED"
    assert job.error is not None
    assert job.error.code == "INTERNAL"
    assert "began 5 times and never finished" in job.error.message


def test_beginning_again_keeps_when_it_first_began() -> None:
    again = states.began(states.claimed(RUNNING, "two", LATER), LATER, writes=False)
    assert (again.attempts, again.started_at) == (2, START)


def test_a_job_without_an_owner_neither_begins_nor_succeeds() -> None:
    with pytest.raises(TransitionError, match="before a process has taken it"):
        states.began(states.released(PENDING), LATER, writes=False)
    with pytest.raises(TransitionError, match="before a process has taken it"):
        states.succeeded(states.released(RUNNING), TOTALS, LATER, RETENTION)


def test_an_attempt_that_was_given_back_does_not_count() -> None:
    assert states.released(RUNNING).attempts == 1
    assert states.released(RUNNING, gives_back=True).attempts == 0
    assert states.released(PENDING, gives_back=True).attempts == 0


def test_success_has_totals_and_an_expiry() -> None:
    assert SUCCEEDED.totals == TOTALS
    assert SUCCEEDED.expires_at == LATER + RETENTION
    assert SUCCEEDED.error is None


def test_only_answers_expire() -> None:
    assert (FAILED.error, FAILED.expires_at) == (FAILURE, None)
    assert CANCELLED.error is not None
    assert (CANCELLED.error.code, CANCELLED.expires_at) == ("CANCELLED", None)


def test_an_answer_is_kept_for_its_time() -> None:
    with pytest.raises(TransitionError, match="is kept until"):
        states.closed(SUCCEEDED, LATER + RETENTION - timedelta(seconds=1))
    assert CLOSED == replace(SUCCEEDED, status="CLOSED")


def test_a_clock_that_runs_behind_does_not_end_a_job_before_it_began() -> None:
    early = START - timedelta(minutes=5)
    begun = states.began(PENDING, early, writes=False)
    assert begun.started_at == START
    assert states.cancelled(begun, early).completed_at == START
    assert states.cancelled(PENDING, early).completed_at == START


OWNERS = ("one", "two", "three")


class Machine(RuleBasedStateMachine):
    """Several processes with the revisions that they last read, over one shared store."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.revision = 1
        self.job = PENDING
        self.read = dict.fromkeys(OWNERS, (self.job, self.revision))
        self.successes = 0

    owners = st.sampled_from(OWNERS)

    def attempt(self, owner: str, change: Callable[[Job], Job]) -> None:
        job, revision = self.read[owner]
        try:
            changed = change(job)
        except TransitionError:
            return
        if revision != self.revision:
            return
        self.compare(self.job, changed)
        self.successes += changed.status == "SUCCEEDED"
        self.job = changed
        self.revision += 1
        self.read[owner] = (changed, self.revision)

    def compare(self, old: Job, new: Job) -> None:
        assert new.status == old.status or new.status in ALLOWED[old.status]
        assert not (old.is_over and (old.status, new.status) != ("SUCCEEDED", "CLOSED"))
        assert new.epoch >= old.epoch
        # Another owner implies another epoch, unless there is no owner.
        assert new.owner in (old.owner, "") or new.epoch > old.epoch
        # Only the owner that releases a job gives back an attempt, and at most one.
        assert new.attempts >= old.attempts - (new.owner == "")
        assert old.started_at is None or new.started_at == old.started_at
        assert old.completed_at is None or new.completed_at == old.completed_at
        assert not (old.writes and new.attempts > old.attempts)

    @rule(owner=owners)
    def look(self, owner: str) -> None:
        self.read[owner] = (self.job, self.revision)

    @rule(owner=owners)
    def claim(self, owner: str) -> None:
        self.attempt(owner, lambda job: states.claimed(job, owner, self.now))

    @rule(owner=owners, writes=st.booleans())
    def begin(self, owner: str, writes: bool) -> None:
        self.attempt(owner, lambda job: states.began(job, self.now, writes))

    @rule(owner=owners, gives_back=st.booleans())
    def release(self, owner: str, gives_back: bool) -> None:
        self.attempt(owner, lambda job: states.released(job, gives_back=gives_back))

    @rule(owner=owners)
    def succeed(self, owner: str) -> None:
        self.attempt(owner, lambda job: states.succeeded(job, TOTALS, self.now, RETENTION))

    @rule(owner=owners)
    def fail(self, owner: str) -> None:
        self.attempt(owner, lambda job: states.failed(job, FAILURE, self.now))

    @rule(owner=owners)
    def cancel(self, owner: str) -> None:
        self.attempt(owner, lambda job: states.cancelled(job, self.now))

    @rule(owner=owners)
    def close(self, owner: str) -> None:
        self.attempt(owner, lambda job: states.closed(job, self.now))

    @rule(hours=st.integers(-1, 13))
    def let_time_pass(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @invariant()
    def holds(self) -> None:
        job = self.job
        assert self.successes <= 1
        assert 0 <= job.attempts <= MOST_ATTEMPTS
        assert job.is_over == (job.completed_at is not None)
        assert (job.totals is not None) == (job.status in ("SUCCEEDED", "CLOSED"))
        assert (job.error is not None) == (job.status in ("FAILED", "CANCELLED"))
        assert job.status != "PENDING" or job.started_at is None
        assert job.status not in ("RUNNING", "SUCCEEDED", "CLOSED") or job.started_at is not None
        assert job.started_at is not None or job.attempts == 0
        times = (job.created_at, job.started_at, job.completed_at, job.expires_at)
        known = [time for time in times if time is not None]
        assert known == sorted(known)


@pytest.mark.parametrize("examples", [60, pytest.param(300, marks=pytest.mark.full)])
def test_a_job_ends_once_whatever_several_processes_do(examples: int) -> None:
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )


def test_every_status_has_its_successors() -> None:
    statuses: set[JobStatus] = {job.status for job in EVERY}
    assert set(ALLOWED) == statuses
