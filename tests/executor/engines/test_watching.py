"""Processes that compute after a cancellation are distinguished from those with other work."""

from types import SimpleNamespace
from typing import Any

import pytest

from caraway_executor.engines import watching
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.watching import Watch

LOOK_S = 0.25


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
