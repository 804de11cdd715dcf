"""Watches a process tree during a hostile statement: memory, CPU time and other clients."""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.kit.deadlines import until
from tests.kit.ray_cluster import descendants

MEASURES = os.environ.get("CARAWAY_MEASURES") == "1"
"""True if tests also judge times and memory, which needs an idle machine."""
MIB = 1024 * 1024
MOST_BYTES = 3 * 1024 * MIB
OF_EXECUTOR_BYTES = 512 * MIB
ANSWERED_S = 1.0
CALM_S = 6.0
START_S = 20.0
"""The time in which an ended executor has restarted."""
_KILLED_BYTES = 6 * 1024 * MIB
"""The memory limit, which protects the machine that runs the tests."""
_LOOK_S = 0.05
_PROBE_S = 0.1
_WINDOW_S = 0.5
_CALM_CORES = 0.5
_SHARE = 8
"""The time limit for statements of others, which pass through several waiting processes."""
_NEXT_TO_NOTHING = """
import sys
for line in sys.stdin:
    sum(range(100_000))
    print(flush=True)
"""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Seen:
    """The observations during a statement."""

    most_bytes: int = 0
    answered_s: list[float] = field(default_factory=list)
    """The times that another client waited for the answers to small statements."""
    machine_s: float = 0.0
    """The time that an unrelated process needed for a trivial task."""
    unanswered: list[str] = field(default_factory=list)
    last_answer: str = ""
    """The response to another client after the end, unless it was the expected answer."""
    was_killed: bool = False
    calm_after_s: float = 0.0

    @property
    def slowest_s(self) -> float:
        return max(self.answered_s, default=0.0)

    @property
    def slow_s(self) -> float:
        """The 99th percentile of the answers to small statements."""
        return statistics.quantiles(self.answered_s, n=100)[-1] if self.answered_s[1:] else 0.0

    @property
    def answers_within_s(self) -> float:
        """The time limit for small statements on this machine."""
        return ANSWERED_S + _SHARE * self.machine_s

    def problems(self, *, others_wait: bool = False, executors: int = 0) -> list[str]:
        """Return the violations.

        With `others_wait`, other clients may be delayed. Executors have memory in addition to the
        scheduler's engine, and need CPU time to restart if they were ended.
        """
        found = []
        most_bytes = MOST_BYTES + executors * OF_EXECUTOR_BYTES
        if self.was_killed:
            found.append(f"it was ended by the test at {_KILLED_BYTES // MIB} MiB")
        if self.last_answer:
            found.append(f"another client was told in the end: {self.last_answer}")
        if not MEASURES:
            return found
        if not self.was_killed and self.most_bytes > most_bytes:
            found.append(f"its processes took {self.most_bytes // MIB} MiB")
        if self.calm_after_s > calm_s(executors):
            found.append(f"work went on for {self.calm_after_s:.1f} s after the answer")
        if others_wait:
            return found
        if self.slowest_s > self.answers_within_s:
            found.append(f"another client was answered after {self.slowest_s:.1f} s")
        if self.unanswered:
            found.append(f"{len(self.unanswered)} answers for others: {self.unanswered[0]}")
        return found


class Watcher:
    """Observes `roots` and their descendants, and queries the API like a client."""

    def __init__(self, roots: Sequence[int], url: str) -> None:
        self._roots = roots
        self._url = url
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._seen = Seen()

    def __enter__(self) -> Seen:
        for work in (self._sample, self._probe, self._measure_machine):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self._seen

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def until_calm(self, most_s: float) -> None:
        """Wait until the processes are idle, and record how long that took."""
        began = time.monotonic()
        before = _seconds(tree(self._roots))
        while (passed := time.monotonic() - began) <= most_s + _WINDOW_S:
            self._stopping.wait(_WINDOW_S)
            now = _seconds(tree(self._roots))
            spent = sum(max(0.0, s - before.get(pid, 0.0)) for pid, s in now.items())
            before = now
            if spent < _CALM_CORES * _WINDOW_S:
                break
        self._seen.calm_after_s = max(0.0, passed)

    def _sample(self) -> None:
        pids: list[int] = []
        looked_s = 0.0
        while not self._stopping.wait(_LOOK_S):
            if time.monotonic() - looked_s > 4 * _LOOK_S:
                pids, looked_s = tree(self._roots), time.monotonic()
            size = sum(map(_own_bytes, pids))
            self._seen.most_bytes = max(self._seen.most_bytes, size)
            if size > _KILLED_BYTES:
                self._seen.was_killed = True
                kill(pids)

    def _measure_machine(self) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", _NEXT_TO_NOTHING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdin is not None and other.stdout is not None
            while not self._stopping.wait(_PROBE_S):
                began = time.monotonic()
                other.stdin.write(b"\n")
                other.stdin.flush()
                other.stdout.readline()
                self._seen.machine_s = max(self._seen.machine_s, time.monotonic() - began)
            other.stdin.close()

    def _probe(self) -> None:
        number = 0
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._stopping.wait(_PROBE_S):
                number += 1
                began = time.monotonic()
                try:
                    got = client.post("/v1/sql", content=f"SELECT {number} AS one")
                    if got.status_code != 200:
                        self._seen.unanswered.append(f"{got.status_code} {got.text[:200]}")
                except httpx.HTTPError as exc:
                    self._seen.unanswered.append(repr(exc)[:200])
                self._seen.answered_s.append(time.monotonic() - began)


def tree(roots: Iterable[int]) -> list[int]:
    """Return processes and all their descendants."""
    return [pid for root in roots for pid in (root, *descendants(root))]


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def calm_s(executors: int) -> float:
    """Return how soon work must end after its answer."""
    return CALM_S + (START_S if executors else 0)


def watched(roots: Sequence[int], url: str, act: Callable[[], None], executors: int = 0) -> Seen:
    """Call `act`, and return the observations of processes and other clients during it."""
    watcher = Watcher(roots, url)
    with watcher as seen:
        act()
        watcher.until_calm(calm_s(executors))
    seen.last_answer = _last_answer(url)
    return seen


def _last_answer(url: str) -> str:
    told: list[str] = []

    def is_answered() -> bool:
        with contextlib.suppress(httpx.HTTPError):
            got = httpx.post(f"{url}/v1/sql", content="SELECT 1 AS one", timeout=60)
            told.append(f"{got.status_code} {got.text[:200]}")
            return got.status_code == 200
        return False

    try:
        until(is_answered, "another client is answered", 120)
    except AssertionError:
        return told[-1] if told else "nothing"
    return ""


def _own_bytes(pid: int) -> int:
    """Return the private memory of a process."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0


def _seconds(pids: Iterable[int]) -> dict[int, float]:
    """Return the CPU time of each process."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found
