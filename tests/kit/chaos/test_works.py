"""The comparison of a load with its model at the end of a chaos run."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.chaos.works import Jobs


class Scheduler:
    """Answers paths of jobs and statements; a job is over when its status is waited for."""

    def __init__(self, numbers: dict[str, int], status: str = "SUCCEEDED") -> None:
        self._numbers = numbers
        self._status = status
        self._rows: list[dict[str, int]] = []

    def ask(self, wanted: str) -> Any:
        if not wanted.startswith("/"):
            return self._rows
        job = wanted.split("/")[3]
        if self._status == "SUCCEEDED":
            self._rows.append({"id": self._numbers[job], "n": 1})
        return {"query_id": job, "status": self._status}


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    made = Jobs(tmp_path)
    made.writing = {"a": 0, "b": 1}
    return made


def test_rows_are_read_when_every_job_is_over(jobs: Jobs) -> None:
    assert list(jobs.check(Scheduler(jobs.writing).ask)) == []
    assert jobs.failed == 0


def test_rows_of_a_successful_job_must_be_there(jobs: Jobs) -> None:
    found = list(jobs.check(Scheduler({"a": 0, "b": 0}).ask))
    assert [each.split(":")[0] for each in found] == ["job b"]


def test_a_job_that_failed_may_have_no_rows(jobs: Jobs) -> None:
    assert list(jobs.check(Scheduler(jobs.writing, "FAILED").ask)) == []
    assert jobs.failed == 2


def test_a_job_must_be_over(jobs: Jobs) -> None:
    found = list(jobs.check(Scheduler(jobs.writing, "RUNNING").ask))
    assert [each.split(":")[0] for each in found] == ["job a", "job b"]
