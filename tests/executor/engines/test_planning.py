"""The planning of a statement is limited by its processor time, not by how long it waits."""

from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core.errors import CarawayError
from caraway_core.statements import Statement
from caraway_executor.engines import planning
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.works import Work

LIMIT_S = 10.0


class Bench:
    """A process with one statement that has no answer, as a watch sees it."""

    pid = 1

    def __init__(self, *, is_shared: bool, limit_s: float | None = LIMIT_S) -> None:
        self.work = Work(Statement("SELECT 1", {}), 0.0, is_begun=True)
        self.asked = 0
        self.errors: list[CarawayError] = []
        self.ended: list[Cause] = []
        settings = SimpleNamespace(planning_timeout_s=limit_s)
        options = SimpleNamespace(settings=settings)
        self._seat: Any = SimpleNamespace(options=options, is_shared=is_shared)

    def look(self, now_s: float) -> None:
        process: Any = self
        self._now_s = now_s
        planning.look(self._seat, process, now_s)

    def unanswered(self) -> list[tuple[int, Work]]:
        return [] if self.errors else [(1, self.work)]

    def ask_planning(self, _number: int) -> None:
        self.asked += 1
        self.work.asked_s = self._now_s

    def reply(self, planned_s: float) -> None:
        self.work.planned_s, self.work.asked_s = planned_s, None

    def refuse(self, _number: int, error: CarawayError) -> None:
        self.errors.append(error)

    def kill(self, cause: Cause, _detail: str) -> None:
        self.ended.append(cause)


def test_a_young_statement_is_not_asked_about() -> None:
    bench = Bench(is_shared=True)
    bench.look(LIMIT_S)
    assert not bench.asked and not bench.errors


def test_a_statement_is_refused_once_its_planning_took_too_long() -> None:
    bench = Bench(is_shared=True)
    for now_s, planned_s in ((11.0, 0.5), (12.0, 9.9)):
        bench.look(now_s)
        bench.reply(planned_s)
        assert not bench.errors
    bench.look(13.0)
    bench.reply(10.1)
    bench.look(13.1)
    assert bench.asked == 3 and not bench.ended
    assert "raise runtime.query.planning_timeout" in bench.errors[0].message


def test_a_process_on_trial_is_ended_with_its_statement() -> None:
    bench = Bench(is_shared=False)
    bench.look(11.0)
    bench.reply(10.5)
    bench.look(11.1)
    assert bench.errors and bench.ended == [Cause.HUNG]


@pytest.mark.parametrize(("used_s", "is_refused"), [(0.4, False), (11.5, True)])
def test_a_process_on_trial_that_does_not_reply_is_judged_by_its_processor_time(
    used_s: float, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "used_s", lambda _pid: used_s)
    bench = Bench(is_shared=False)
    for now_s in (11.0, 11.5, 12.5):
        bench.look(now_s)
    assert bench.asked == 1 and bool(bench.errors) is is_refused


def test_without_a_limit_nothing_is_asked() -> None:
    bench = Bench(is_shared=True, limit_s=None)
    bench.look(1000.0)
    assert not bench.asked
