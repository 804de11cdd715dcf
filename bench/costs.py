"""Measures what a statement costs, in wall time and in processor time, on engines in turn."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pyarrow as pa

from bench import asking, quotas

_UNCOUNTED = 2


class Cost(NamedTuple):
    """The wall time and the processor time of one run of a query."""

    wall_s: float
    work_s: float
    """Processor time."""


Run = Callable[[str], Cost]


def over_http(url: str, pid: int, limit_s: float) -> Run:
    """Return what runs statements by the HTTP API of a process and of those that it started."""

    def run(sql: str) -> Cost:
        before = work_s(pid)
        answer = asking.ask(url, sql, limit_s)
        return Cost(answer.seconds, work_s(pid) - before)

    return run


def work_s(root: int) -> float:
    """Return the processor time of a process and of those that it started."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in quotas.descendants(root))


def medians(runs: Mapping[str, Run], sql: str, count: int) -> dict[str, Cost]:
    """Run a statement on all engines, in an order that changes; the first runs do not count."""
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    for turn in range(count + _UNCOUNTED):
        for name in list(runs)[:: -1 if turn % 2 else 1]:
            found[name].append(runs[name](sql))
    return {
        name: Cost(*map(statistics.median, zip(*costs[_UNCOUNTED:], strict=True)))
        for name, costs in found.items()
    }


class EngineProcess:
    """An engine of others in a process of its own. `opened` returns there what runs statements."""

    def __init__(self, opened: Callable[..., Callable[[str], Any]], *args: object) -> None:
        self._opened = opened
        self._args = args

    def __enter__(self) -> "EngineProcess":
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, self._opened, self._args))
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pipe.send(None)
        self._process.join(10)

    def ask(self, sql: str) -> Cost:
        """Run a statement and return what it took."""
        self._pipe.send((sql, False))
        cost: Cost = self._pipe.recv()
        return cost

    def answer(self, sql: str) -> pa.Table:
        """Run a statement and return its rows."""
        self._pipe.send((sql, True))
        return self._pipe.recv()


def _serve(
    pipe: Connection, opened: Callable[..., Callable[[str], Any]], args: tuple[object, ...]
) -> None:
    run = opened(*args)
    pipe.send(True)
    while (asked := pipe.recv()) is not None:
        sql, is_wanted = asked
        began = time.perf_counter(), time.process_time()
        rows = run(sql)
        took = Cost(time.perf_counter() - began[0], time.process_time() - began[1])
        pipe.send(rows if is_wanted else took)
