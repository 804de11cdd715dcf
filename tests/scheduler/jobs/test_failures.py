"""The errors that a client sees of a failed job, for all exceptions of its run."""

import logging

import pytest

from caraway_core import errors
from caraway_core.errors import outcomes
from caraway_core.ids import JobId, TableName
from caraway_scheduler.jobs import failures

JOB = JobId("A-1")


@pytest.mark.parametrize(
    ("raised", "before", "after"),
    [
        (errors.InvalidQueryError("no column"), "SUBMISSION_FAILED", "EXECUTION_FAILED"),
        (
            errors.TableNotFoundError("no t", TableName("t")),
            "SUBMISSION_FAILED",
            "EXECUTION_FAILED",
        ),
        (errors.ParametersError("no $1"), "PARAMETER_BINDING_FAILED", "PARAMETER_BINDING_FAILED"),
        (errors.ExecutionError("broken"), "EXECUTION_FAILED", "EXECUTION_FAILED"),
        (errors.OverloadedError("full", 1), "SCHEDULER_UNAVAILABLE", "SCHEDULER_UNAVAILABLE"),
        (errors.ResultStoreError("bad"), "FETCHING_RESULTS_FAILED", "FETCHING_RESULTS_FAILED"),
        (failures.timed_out(5), "TIMEOUT", "TIMEOUT"),
        (errors.CarawayError("ours"), "INTERNAL", "INTERNAL"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else None,
)
def test_code_says_whose_fault_it_was(raised: errors.CarawayError, before: str, after: str) -> None:
    early = failures.explained(raised, JOB, has_begun=False)
    late = failures.explained(raised, JOB, has_begun=True)
    assert (early.code, late.code) == (before, after)
    assert early.message == late.message == outcomes.words(raised)


@pytest.mark.parametrize(
    "raised",
    [KeyError("sesame"), OSError(5, "sesame"), ExceptionGroup("sesame", [ValueError("sesame")]),
     BaseException("sesame")],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_what_is_not_ours_is_logged_and_not_told(
    raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        error = failures.explained(raised, JOB, has_begun=True)
    assert error.code == "INTERNAL" and JOB in error.message
    assert "sesame" not in error.message
    (record,) = caplog.records
    assert record.exc_info is not None and record.exc_info[1] is raised


@pytest.mark.parametrize(("seconds", "told"), [(30, "30"), (0.5, "0.5"), (3600.0, "3600")])
def test_time_limit_is_named_as_it_was_written(seconds: float, told: str) -> None:
    assert f"timeout_seconds of {told} " in failures.timed_out(seconds).message
