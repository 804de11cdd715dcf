import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from caraway_core.errors import OverloadedError
from caraway_core.ids import PUBLIC, JobId, PrincipalId
from caraway_scheduler.jobs.queue import FairQueue

A, B, C = PrincipalId("a"), PrincipalId("b"), PrincipalId("c")


def fill(queue: FairQueue, principal: PrincipalId, *jobs: str) -> None:
    for job in jobs:
        queue.add(principal, JobId(job))


def drain(queue: FairQueue) -> list[str]:
    """Return all jobs in queue order, if none of them ends."""
    found: list[str] = []
    while (job_id := queue.next()) is not None:
        found.append(job_id)
        queue.started(PrincipalId(job_id[0]))
    return found


def test_an_empty_queue_has_no_next_job() -> None:
    queue = FairQueue(3)
    assert (queue.next(), len(queue), queue.is_full) == (None, 0, False)


def test_principals_take_turns_and_keep_their_own_order() -> None:
    queue = FairQueue(10)
    fill(queue, A, "a1", "a2", "a3", "a4")
    fill(queue, B, "b1", "b2")
    fill(queue, C, "c1")
    assert drain(queue) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_the_principal_with_fewer_running_jobs_is_first() -> None:
    queue = FairQueue(10)
    fill(queue, A, "a1", "a2")
    fill(queue, B, "b1", "b2")
    for _ in range(2):
        queue.started(A)
    assert [queue.next(), queue.next()] == ["b1", "b2"]
    queue.finished(A)
    queue.finished(A)
    assert queue.next() == "a1"


def test_a_returning_principal_ranks_behind_waiting_ones() -> None:
    queue = FairQueue(10)
    fill(queue, B, "b1", "b2", "b3")
    assert queue.next() == "b1"
    served = []
    for number in range(4):
        fill(queue, A, f"a{number}")
        served.append(queue.next())
        served.append(queue.next())
    assert served == ["b2", "a0", "b3", "a1", "a2", None, "a3", None]


def test_a_full_queue_is_an_error() -> None:
    queue = FairQueue(4)
    fill(queue, A, "a1", "a2")
    fill(queue, B, "b1", "b2")
    assert queue.is_full
    with pytest.raises(OverloadedError, match="4 asynchronous queries wait") as raised:
        queue.add(C, JobId("c1"))
    assert "runtime.jobs.max_queued" in raised.value.message
    assert raised.value.retry_after_s > 0
    assert len(queue) == 4


def test_one_key_cannot_lock_others_out() -> None:
    queue = FairQueue(4)
    fill(queue, A, "a1", "a2")
    with pytest.raises(OverloadedError, match=r"2 .* of this key wait") as raised:
        queue.check(A)
    assert "runtime.jobs.max_queued" in raised.value.message
    fill(queue, B, "b1", "b2")


def test_public_may_fill_the_whole_queue() -> None:
    queue = FairQueue(3)
    fill(queue, PUBLIC, "1", "2", "3")
    with pytest.raises(OverloadedError, match="3 asynchronous queries wait"):
        queue.check(PUBLIC)


def test_a_queue_of_one_place_has_it_for_anybody() -> None:
    queue = FairQueue(1)
    fill(queue, A, "a1")
    with pytest.raises(OverloadedError):
        fill(queue, B, "b1")


def test_an_accepted_job_is_always_queued() -> None:
    queue = FairQueue(1)
    for number in range(3):
        queue.add(A, JobId(f"a{number}"), always=True)
    assert (len(queue), queue.is_full) == (3, True)
    assert [queue.next() for _ in range(3)] == ["a0", "a1", "a2"]


def test_a_job_waits_once() -> None:
    queue = FairQueue(2)
    fill(queue, PUBLIC, "1", "2", "1")
    assert (len(queue), JobId("1") in queue) == (2, True)
    assert [queue.next() for _ in range(3)] == ["1", "2", None]


def test_a_job_that_is_removed_has_no_turn() -> None:
    queue = FairQueue(10)
    fill(queue, A, "a1", "a2")
    assert queue.remove(JobId("a1"))
    assert not queue.remove(JobId("a1"))
    assert (queue.waiting(A), queue.next()) == (1, "a2")


def test_more_cannot_finish_than_started() -> None:
    with pytest.raises(ValueError, match="no job of 'a' runs here"):
        FairQueue(1).finished(A)


PRINCIPALS = st.sampled_from([PrincipalId(f"key-{number}") for number in range(5)])


@given(st.lists(PRINCIPALS, min_size=1, max_size=60), st.data())
def test_no_principal_starves(arriving: list[PrincipalId], data: st.DataObject) -> None:
    """If each job ends before the next pick, each principal is served within one round."""
    queue = FairQueue(1)
    waiting: dict[PrincipalId, list[JobId]] = {}
    passed_over: dict[PrincipalId, int] = {}
    known: set[PrincipalId] = set()
    for number, principal in enumerate(arriving):
        job_id = JobId(f"{number}")
        queue.add(principal, job_id, always=True)
        waiting.setdefault(principal, []).append(job_id)
        passed_over.setdefault(principal, 0)
        known.add(principal)
        for _ in range(data.draw(st.integers(0, 2))):
            if (chosen := queue.next()) is None:
                break
            owner = next(each for each, jobs in waiting.items() if jobs and jobs[0] == chosen)
            queue.started(owner)
            queue.finished(owner)
            waiting[owner].pop(0)
            passed_over[owner] = 0
            for each, jobs in waiting.items():
                if jobs and each != owner:
                    passed_over[each] += 1
                    assert passed_over[each] < len(known)


class Machine(RuleBasedStateMachine):
    """Compares the queue with plain lists, with jobs that end at any time."""

    MOST = 6

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue(self.MOST)
        self.lists: dict[PrincipalId, list[JobId]] = {}
        self.running: list[PrincipalId] = []
        self.count = 0

    def new(self) -> JobId:
        self.count += 1
        return JobId(f"{self.count}")

    def waiting(self) -> list[JobId]:
        return [job_id for jobs in self.lists.values() for job_id in jobs]

    @rule(principal=PRINCIPALS)
    def add(self, principal: PrincipalId) -> None:
        job_id = self.new()
        own = self.lists.setdefault(principal, [])
        may = len(self.waiting()) < self.MOST and len(own) < self.MOST / 2
        try:
            self.queue.add(principal, job_id)
        except OverloadedError:
            assert not may
        else:
            assert may
            own.append(job_id)

    @rule(principal=PRINCIPALS)
    def restore(self, principal: PrincipalId) -> None:
        job_id = self.new()
        self.queue.add(principal, job_id, always=True)
        self.lists.setdefault(principal, []).append(job_id)

    @rule()
    def run_the_next(self) -> None:
        chosen = self.queue.next()
        if chosen is None:
            assert not self.waiting()
            return
        principal = next(each for each, jobs in self.lists.items() if chosen in jobs)
        assert self.lists[principal].pop(0) == chosen
        others = [each for each, jobs in self.lists.items() if jobs]
        fewest = min((self.running.count(each) for each in others), default=len(self.running))
        assert self.running.count(principal) <= fewest
        self.queue.started(principal)
        self.running.append(principal)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if self.running:
            principal = data.draw(st.sampled_from(self.running))
            self.running.remove(principal)
            self.queue.finished(principal)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if waiting := self.waiting():
            job_id = data.draw(st.sampled_from(waiting))
            assert self.queue.remove(job_id)
            for jobs in self.lists.values():
                if job_id in jobs:
                    jobs.remove(job_id)

    @invariant()
    def agrees(self) -> None:
        assert len(self.queue) == len(self.waiting())
        assert self.queue.is_full == (len(self.waiting()) >= self.MOST)
        for principal, jobs in self.lists.items():
            assert self.queue.waiting(principal) == len(jobs)
        # Nothing is kept of principals without jobs here.
        assert len(self.queue._turns) <= len(self.waiting()) + len(self.running)


@pytest.mark.parametrize("examples", [50, pytest.param(200, marks=pytest.mark.full)])
def test_queue_behaves_like_lists(examples: int) -> None:
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )
