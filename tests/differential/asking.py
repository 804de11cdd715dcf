"""Runs statements on runners, each in its own event loop, and caches the reference's answers."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, TypeVar

from caraway_core.errors import QueryError
from tests.differential import http_runner
from tests.differential.comparing import ANY_ORDER, Order, Outcome, difference
from tests.differential.datasets import Dataset
from tests.differential.http_runner import OverHttp
from tests.differential.runners import Distributed, Opening, Plain

_STATEMENT_S = 120
_MOST_REMEMBERED = 2_000
_T = TypeVar("_T")


class Runner:
    """A `Distributed` with synchronous methods; it owns an event loop."""

    def __init__(self, of: Distributed) -> None:
        self._of = of
        self._is_remote = isinstance(of, OverHttp)
        self._known: dict[str, Outcome] = {}
        self._loop = asyncio.get_running_loop()
        self.closing = asyncio.Event()

    def outcome(self, sql: str) -> Outcome:
        """Return the answer, or the error with which the statement ended."""
        try:
            return _wait(self._loop, self._of.execute(sql))
        except QueryError as error:
            return error

    def remembered(self, sql: str) -> Outcome:
        """Return the outcome of a statement that is executed once for several runners."""
        if sql not in self._known:
            if len(self._known) == _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[sql] = self.outcome(sql)
        return self._known[sql]

    def as_sent(self, outcome: Outcome) -> Outcome:
        """Return an answer in the types in which this runner would send it."""
        if isinstance(outcome, QueryError):
            return outcome
        if isinstance(self._of, Plain):
            return self._of.as_sent(outcome)
        return http_runner.as_sent(outcome) if self._is_remote else outcome

    def explain(self, sql: str) -> str:
        return _wait(self._loop, self._of.explain(sql))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.closing.set)


@contextmanager
def opened(opening: Opening, dataset: Dataset) -> Iterator[Runner]:
    """Open and close a runner over the dataset, in one task of an event loop in a thread."""
    ready: Future[Runner] = Future()
    thread = Thread(target=lambda: asyncio.run(_hold(opening, dataset, ready)), name="runner")
    thread.start()
    try:
        runner = ready.result()
        try:
            yield runner
        finally:
            runner.close()
    finally:
        thread.join()


async def _hold(opening: Opening, dataset: Dataset, ready: Future[Runner]) -> None:
    try:
        async with opening(dataset) as of:
            runner = Runner(of)
            ready.set_result(runner)
            await runner.closing.wait()
    except BaseException as exc:
        if ready.done():
            raise
        ready.set_exception(exc)


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
    async def bounded() -> _T:
        async with asyncio.timeout(_STATEMENT_S):
            return await work

    return asyncio.run_coroutine_threadsafe(bounded(), loop).result()


@dataclass(frozen=True, slots=True)
class Pair:
    """The reference and a runner over the same dataset."""

    reference: Runner
    runner: Runner

    def expected(self, sql: str) -> Outcome:
        """Return the outcome of the reference, which several runners share."""
        return self.reference.remembered(sql)

    def check(self, sql: str, order: Order = ANY_ORDER) -> None:
        """Fail if the outcomes differ."""
        self.compare(sql, self.expected(sql), order)

    def compare(self, sql: str, expected: Outcome, order: Order = ANY_ORDER) -> None:
        """Fail if the outcome of the runner differs from the expected one."""
        self.judge(sql, expected, self.runner.outcome(sql), order)

    def judge(self, sql: str, expected: Outcome, got: Outcome, order: Order = ANY_ORDER) -> None:
        """Fail if an outcome of the runner differs from the expected one."""
        whole = None if order.whole is None else self.runner.as_sent(order.whole)
        sent = self.runner.as_sent(expected)
        text = difference(sent, got, replace(order, whole=whole))
        assert text is None, f"{text}\n\n{sql}"
