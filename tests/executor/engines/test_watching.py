"""Processes that compute after a cancellation are distinguished from those with other work."""

from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core.errors import CarawayError
from caraway_core.statements import Statement
from caraway_executor.engines import watching
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.watching import Watch
from caraway_executor.engines.works import Work

LOOK_S = 0.25
LIMIT_S = 10.0


class Bench:
    """One process, which has stopped a statement, as a watch sees it every quarter of a second."""

    pid = 1

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_stopped = True
        self.works: dict[int, None] = {}
        self.begun = 0
        self.ended: list[Cause] = []
        self.retired: list[Any] = []
        self._now_s = self._wanted_s = 0.0
        self._watch = Watch([])
        monkeypatch.setattr(watching, "wanted_s", lambda _pid: self._wanted_s)

    def kill(self, cause: Cause, _detail: str = "") -> None:
        self.ended.append(cause)

    def looks(self, count: int, cores: float, *, begins: bool, working: bool = False) -> None:
        """Look this often; before each look it wants `cores`, and may begin and end work."""
        seat: Any = SimpleNamespace(is_disposable=True, retire=self.retired.append)
        process: Any = self
        for _ in range(count):
            self._now_s += LOOK_S
            self._wanted_s += cores * LOOK_S
            self.begun += begins
            self.works = {self.begun: None} if working else {}
            self._watch._look_at_rest(seat, process, self._now_s)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_process_that_is_busy_without_work_is_ended(bench: Bench) -> None:
    bench.looks(5, 1.0, begins=False)
    assert bench.ended == [Cause.HUNG]


def test_process_that_was_busy_with_other_work_is_not_ended(bench: Bench) -> None:
    bench.looks(20, 1.0, begins=True)
    assert bench.has_stopped and not bench.ended
    # Then it rests, so the cancelled work has ended as well.
    bench.looks(10, 0.0, begins=False)
    assert not bench.has_stopped and not bench.ended


def test_process_is_judged_by_its_time_between_other_work(bench: Bench) -> None:
    for _ in range(5):
        bench.looks(1, 1.0, begins=True)
        bench.looks(1, 1.0, begins=False)
    assert bench.ended == [Cause.HUNG]


def test_process_apart_gets_no_more_statements_while_its_work_ends(bench: Bench) -> None:
    bench.looks(5, 1.0, begins=False, working=True)
    assert bench.retired and not bench.ended


def test_process_that_rests_has_stopped_its_work(bench: Bench) -> None:
    bench.looks(5, 0.1, begins=False)
    assert not bench.has_stopped and not bench.ended


class Probed:
    """A process with one statement under way, whose threads may take no work."""

    pid = 1

    def __init__(self) -> None:
        self.is_silent = self.has_writes = False
        self.probed_s: float | None = None
        self.works = {1: SimpleNamespace(began_s=0.0)}
        self.probes = 0
        self.now_s = 0.0

    def probe(self) -> None:
        self.probes += 1
        self.probed_s = self.now_s


@pytest.mark.parametrize(
    ("cores", "answers", "is_starved"),
    [(2.0, False, True), (0.1, False, False), (2.0, True, False)],
)
def test_process_whose_threads_compute_and_take_no_work_is_starved(
    monkeypatch: pytest.MonkeyPatch, cores: float, answers: bool, is_starved: bool
) -> None:
    probed = Probed()
    process: Any = probed
    watch = Watch([])
    monkeypatch.setattr(watching, "used_s", lambda _pid: probed.now_s * cores)
    found = []
    for _ in range(10):
        probed.now_s += LOOK_S
        found.append(watch._is_starved(process, probed.now_s))
        if answers:
            probed.probed_s = None
    assert any(found) is is_starved
    assert probed.probes == (10 if answers else 1)
    # Not before it had time to answer, and never where rows were written.
    assert not any(found[:3])
    probed.has_writes = True
    assert not watch._is_starved(process, 100.0)


class PlanningBench:
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
        watching.limit_planning(self._seat, process, now_s)

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
    bench = PlanningBench(is_shared=True)
    bench.look(LIMIT_S)
    assert not bench.asked and not bench.errors


def test_a_statement_is_refused_once_its_planning_took_too_long() -> None:
    bench = PlanningBench(is_shared=True)
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
    bench = PlanningBench(is_shared=False)
    bench.look(11.0)
    bench.reply(10.5)
    bench.look(11.1)
    assert bench.errors and bench.ended == [Cause.HUNG]


@pytest.mark.parametrize(("used_s", "is_refused"), [(0.4, False), (11.5, True)])
def test_a_process_on_trial_that_does_not_reply_is_judged_by_its_processor_time(
    used_s: float, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "used_s", lambda _pid: used_s)
    bench = PlanningBench(is_shared=False)
    for now_s in (11.0, 11.5, 12.5):
        bench.look(now_s)
    assert bench.asked == 1 and bool(bench.errors) is is_refused


def test_without_a_limit_nothing_is_asked() -> None:
    bench = PlanningBench(is_shared=True, limit_s=None)
    bench.look(1000.0)
    assert not bench.asked
