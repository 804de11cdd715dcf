from datetime import UTC, datetime, timedelta

import pytest

from caraway_management.domain import deployments
from caraway_management.domain.deployments import (
    Code,
    Observed,
    Phase,
    Problem,
    Progress,
    Status,
)

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
RUNNING = Progress(Status.IN_PROGRESS, started_at=NOW)
SHORTAGES = [code for code in Code if code.is_retriable]
ENDS = [code for code in Code if not code.is_retriable]


def test_a_queued_deployment_begins_once() -> None:
    begun = deployments.begin(Progress(Status.QUEUED), NOW)
    assert begun == RUNNING
    assert deployments.begin(begun, LATER) == begun


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CREATED])
def test_a_finished_deployment_never_changes(status: Status) -> None:
    finished = Progress(status, None, NOW, NOW)
    ready = Observed(Phase.READY, 7)
    assert deployments.begin(finished, LATER) == finished
    assert deployments.judge(finished, 7, ready, LATER) == finished
    assert deployments.supersede(finished, LATER) == finished


@pytest.mark.parametrize("status", deployments.UNFINISHED)
def test_a_superseded_deployment_keeps_no_problem(status: Status) -> None:
    short = Progress(status, Problem(Code.INSUFFICIENT_CPU, "no CPU"), NOW)
    assert deployments.supersede(short, LATER) == Progress(Status.CREATED, None, NOW, LATER)


def test_a_ready_runtime_of_the_deployment_is_its_success() -> None:
    short = Progress(Status.IN_PROGRESS, Problem(Code.INSUFFICIENT_CPU, "no CPU"), NOW)
    seen = Observed(Phase.READY, 7)
    assert deployments.judge(short, 7, seen, LATER) == Progress(Status.SUCCEEDED, None, NOW, LATER)
    assert deployments.judge(short, 8, seen, LATER) == short
    queued = Progress(Status.QUEUED)
    assert deployments.judge(queued, 7, seen, LATER) == queued


@pytest.mark.parametrize("code", SHORTAGES)
@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.FAILED, Phase.ABSENT])
def test_a_shortage_is_shown_until_it_ends(code: Code, phase: Phase) -> None:
    problem = Problem(code, "too little")
    shown = deployments.judge(RUNNING, 7, Observed(phase, 7, problem), LATER)
    assert shown == Progress(Status.IN_PROGRESS, problem, NOW)
    assert deployments.judge(shown, 7, Observed(Phase.STARTING, 7), LATER) == RUNNING


@pytest.mark.parametrize("code", ENDS)
def test_a_terminal_problem_fails_it(code: Code) -> None:
    problem = Problem(code, "impossible")
    seen = Observed(Phase.FAILED, 7, problem)
    failed = Progress(Status.FAILED, problem, NOW, LATER)
    assert deployments.judge(RUNNING, 7, seen, LATER) == failed
    assert deployments.judge(RUNNING, 6, seen, LATER) == RUNNING


def test_a_failure_without_a_reason_gets_one() -> None:
    failed = deployments.judge(RUNNING, 7, Observed(Phase.FAILED, 7), LATER)
    assert failed.problem is not None and failed.problem.code is Code.UNABLE_TO_START


def test_time_alone_fails_nothing() -> None:
    late = NOW + timedelta(days=30)
    assert deployments.judge(RUNNING, 7, Observed(Phase.STARTING, 7), late) == RUNNING
    assert not deployments.is_overdue(RUNNING, NOW + timedelta(minutes=14, seconds=59))
    assert deployments.is_overdue(RUNNING, NOW + timedelta(minutes=15))
    waits = [deployments.next_look_s(RUNNING, NOW + timedelta(seconds=age)) for age in (0, 61, 901)]
    assert waits == [0.5, 5, 60]
