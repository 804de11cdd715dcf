"""The index of jobs agrees with a look at all of them."""

from datetime import datetime, timedelta
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.ids import JobId
from caraway_scheduler.jobs.job_index import JobIndex
from caraway_scheduler.jobs.model import Job, JobStatus
from tests.scheduler.jobs import making

MOMENTS = st.none() | st.integers(0, 5).map(lambda hours: making.START + timedelta(hours=hours))
REVISIONS = st.builds(
    lambda job_id, status, at: making.job(job_id, status=status, expires_at=at),
    st.sampled_from(["A", "B", "C"]),
    st.sampled_from(get_args(JobStatus)),
    MOMENTS,
)
STEPS = st.lists(REVISIONS | st.sampled_from(["A", "B", "C"]) | MOMENTS.filter(bool), max_size=40)


@settings(max_examples=200, derandomize=True)
@given(STEPS)
def test_it_finds_what_a_look_at_all_jobs_finds(steps: list[Job | str | datetime]) -> None:
    index, jobs = JobIndex(), dict[JobId, Job]()
    for step in steps:
        match step:
            case Job():
                index.put(step)
                jobs[step.job_id] = step
            case str():
                index.drop(JobId(step))
                jobs.pop(JobId(step), None)
            case datetime():
                found = index.expired(step)
                due = {
                    (each.expires_at, each.job_id)
                    for each in jobs.values()
                    if each.status == "SUCCEEDED" and each.expires_at and each.expires_at <= step
                }
                assert list(found) == [job_id for _, job_id in sorted(due)]
        assert set(index.under_way()) == {each.job_id for each in jobs.values() if not each.is_over}


def test_entries_of_jobs_that_changed_do_not_pile_up() -> None:
    index = JobIndex()
    for number in range(20_000):
        at = making.START + timedelta(seconds=number)
        index.put(making.job("A", status="SUCCEEDED", expires_at=at))
    assert len(index._heap) < 2_000
    assert index.expired(making.START + timedelta(days=1)) == [JobId("A")]
