"""Jobs as values: when one is over, and where its answer lies."""

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings

from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import TERMINAL, Job, JobProgress, JobRequest
from tests.scheduler.jobs import making


@settings(max_examples=50, derandomize=True)
@given(making.JOBS)
def test_job_is_over_where_nothing_can_follow_but_its_close(job: Job) -> None:
    assert job.is_over == (states.ALLOWED[job.status] <= {"CLOSED"})
    assert job.is_over == (job.status in TERMINAL)


@settings(max_examples=50, derandomize=True)
@given(making.JOBS)
def test_each_epoch_has_a_place_of_its_own_that_names_its_job(job: Job) -> None:
    following = replace(job, epoch=job.epoch + 1)
    assert job.result_key != following.result_key
    name, _, epoch = job.result_key.rpartition(".")
    assert (name, int(epoch)) == (job.job_id, job.epoch)


def test_every_status_that_can_follow_is_a_status() -> None:
    following = frozenset().union(*states.ALLOWED.values())
    assert following | {"PENDING"} == set(states.ALLOWED)
    assert {status for status in states.ALLOWED if not states.ALLOWED[status]} <= TERMINAL


def test_values_do_not_change_and_share_nothing() -> None:
    with pytest.raises(FrozenInstanceError):
        making.job().status = "CLOSED"  # type: ignore[misc]
    assert JobRequest("a").parameters is not JobRequest("b").parameters
    assert JobProgress() == JobProgress(waits_for="")
