"""The engine processes of one runtime: who runs what, what is run again, and what is refused."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from caraway_core import suspects, tasks
from caraway_core.errors import UnavailableError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, CatalogSnapshot, Statement, ViewFacts
from caraway_core.protocols.engines import EngineReport, EngineStatus
from caraway_core.suspects import End, Suspects
from caraway_executor import usage
from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    NotBegunError,
    RunsApartError,
    RunsInMainError,
    SilentError,
)
from caraway_executor.engines.forking import Forking
from caraway_executor.engines.kept_rows import KeptRows
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.rerunning import RerunStream
from caraway_executor.engines.seats import Seat
from caraway_executor.engines.starting import ForkServer
from caraway_executor.engines.trials import LongPlanning, Trials
from caraway_executor.engines.watching import Watch

logger = logging.getLogger(__name__)
_TRIALS = 3
_MOST_MOVES = 20
_Result = TypeVar("_Result")


class Engines:
    """Runs statements in engine processes.

    The main one runs most. Joins of all rows with all rows run apart, because they do not stop
    when they are told to. Statements that ran while an engine ended run again on trial, each alone.
    """

    def __init__(
        self, main: EngineOptions, apart: EngineOptions, server: ForkServer | None = None
    ) -> None:
        """Take what processes are started with; the system's memory is bounded for each."""
        self.suspects = Suspects(time.time)
        self.restarts: Counter[Cause] = Counter()
        self._forking = Forking(self._lost, server)
        kept = KeptRows()
        self._main = Seat("main", self._forking.fork, main, kept)
        self._apart = Seat("apart", self._forking.fork, apart, kept, is_disposable=True)
        trial = replace(main, role="apart")
        self._trial_seats = [
            Seat("trial", self._forking.fork, trial, kept, is_disposable=True, is_shared=False)
            for _ in range(_TRIALS)
        ]
        self.trials = Trials(self._trial_seats)
        self.long_planning = LongPlanning()
        self._tasks = tasks.Tasks()
        self._watch = Watch(self.seats)
        self._is_closed = False

    @property
    def main(self) -> Seat:
        return self._main

    @property
    def seats(self) -> tuple[Seat, ...]:
        return self._main, self._apart, *self._trial_seats

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of every view of the catalog that new statements see."""
        return self._main.views

    @property
    def processes(self) -> list[EngineProcess]:
        return [process for seat in self.seats for process in seat.processes]

    async def install(self, catalog: CatalogSnapshot) -> Mapping[TableName, str]:
        """Have new statements see a catalog; returns what of it cannot be built."""
        self._watch.begin()
        self._note(catalog)
        return await self._main.install(catalog)

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement; run it again, once and alone, where its engine ended before its rows.

        Raises:
            StatementRefusedError: it ended engines before.
            QueryError: it failed, or ended the engine.
        """
        run = _Run(self, query_id, statement)
        try:
            stream = await run.begin()
        except EngineLostError as exc:
            raise exc.told(wrote=False) from exc
        return RerunStream(stream, run.begin_alone, run.end)

    async def prepare(
        self, catalog: CatalogSnapshot
    ) -> tuple[Mapping[TableName, str], Mapping[TableName, ViewFacts]]:
        """Register a catalog, which statements see when it is published."""
        self._watch.begin()
        return await self._main.prepare(catalog)

    async def publish(self) -> None:
        """Have new statements see the catalog that was prepared last."""
        self._note(await self._main.publish())

    def _note(self, catalog: CatalogSnapshot) -> None:
        for seat in (self._apart, *self._trial_seats):
            seat.note(catalog)

    async def ask(
        self, statement: Statement, method: str, *arguments: object
    ) -> tuple[Any, EngineProcess]:
        """Call a method about a statement; returns its answer, and the process that gave it.

        It is called again, once and apart, where the process ends meanwhile.

        Raises:
            StatementRefusedError: the statement ended engines before.
            CarawayError: it failed, or ended the engine.
        """
        key = suspects.key(statement.sql, statement.parameters)
        self.suspects.check(key)
        if self.runs_in_main(key):
            try:
                return await self._moved(self._main, lambda each: each.call(method, *arguments))
            except SilentError:
                pass
            except EngineLostError as exc:
                if exc.cause is Cause.CLOSED:
                    raise exc.told(wrote=False) from exc
        self.suspects.check(key)
        seat, leave = await self.trials.take()
        try:
            await seat.newest()
            began_s = time.monotonic()
            answer = await self._moved(seat, lambda each: each.call(method, *arguments))
            self.long_planning.took(key, time.monotonic() - began_s)
        except EngineLostError as exc:
            raise exc.told(wrote=False) from exc
        finally:
            leave()
        return answer

    def runs_in_main(self, key: str) -> bool:
        """Tell if nothing speaks against a statement beside others."""
        return self.suspects.find(key) is None and key not in self.long_planning

    async def begin(self, seat: Seat, query_id: QueryId, statement: Statement) -> BatchStream:
        """Begin a statement in the process of a seat, or in the one that has to run it."""

        async def opened(process: EngineProcess) -> BatchStream:
            return await process.open("execute", query_id, statement)

        try:
            stream, _ = await self._moved(seat, opened)
        except RunsApartError:
            stream, _ = await self._moved(self._apart, opened)
        except RunsInMainError:
            stream, _ = await self._moved(self._main, opened)
        return stream

    async def _moved(
        self, seat: Seat, work: Callable[[EngineProcess], Awaitable[_Result]]
    ) -> tuple[_Result, EngineProcess]:
        """Have a process do work, or the next one where that has not looked at it."""
        for _ in range(_MOST_MOVES):
            process = await (seat.ready() if seat is self._main else seat.newest())
            try:
                return await work(process), process
            except NotBegunError:
                continue
        raise UnavailableError("the engine was replaced too often; try again")

    async def tell(self, method: str, *arguments: object) -> None:
        """Call a method of each process, without need of an answer."""
        for process in self.processes:
            with suppress(EngineLostError, NotBegunError):
                await process.call(method, *arguments)

    async def open(self, method: str, *arguments: object) -> BatchStream:
        """Begin a stream of work that may be done again, and do it again where its engine ends."""

        async def begin() -> BatchStream:
            stream, _ = await self._moved(self._main, lambda each: each.open(method, *arguments))
            return stream

        try:
            stream = await begin()
        except EngineLostError:
            stream = await begin()
        return RerunStream(stream, begin, _ignore)

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the main engine, again where it ends meanwhile.

        Raises:
            CarawayError: it failed, or engines end at it.
        """
        for is_last in (False, True):
            try:
                value, _ = await self._moved(self._main, lambda each: each.call(method, *arguments))
            except EngineLostError as exc:
                if is_last:
                    raise exc.told(wrote=False) from exc
            else:
                return value
        raise AssertionError("unreachable")

    def report(self) -> EngineReport:
        """Return what is known of the engine processes."""
        processes = [
            EngineStatus(
                seat.name,
                each.pid,
                each.started_at_ms,
                usage.anonymous_bytes(each.pid),
                seat.options.memory_bytes or 0,
                each.statements,
            )
            for seat in self.seats
            for each in seat.processes
        ]
        ends = {cause.value: count for cause, count in self.restarts.items()}
        return EngineReport(
            tuple(processes),
            ends,
            {str(cause): count for cause, count in self.suspects.refusals.items()},
        )

    def close(self) -> None:
        """End every engine process."""
        self._is_closed = True
        self._watch.close()
        self._tasks.cancel()
        self._forking.close()

    def _lost(self, process: EngineProcess) -> None:
        """Take the end of a process: tell who waits, blame, and start another one."""
        cause = process.cause or Cause.CRASH
        works = list(process.works.values())
        if cause.blamed is not None:
            stopped = [each for each in works if each.is_stopped]
            # What did not stop is what hung; all else was beside it.
            blamed = stopped if cause is Cause.HUNG and stopped else works
            keys = {
                suspects.key(each.statement.sql, each.statement.parameters)
                for each in blamed
                if each.statement is not None and each.is_begun
            }
            if keys:
                self.suspects.ended(keys, End(cause.blamed, process.detail))
            self.restarts[cause] += 1
            logger.error(
                "an engine process ended",
                extra={"cause": cause.value, "detail": process.detail, "statements": len(works)},
            )
        process.fail_all()
        if self._main.vacate(process) and not self._is_closed:
            self._tasks.spawn(self._refilled(), "replace an engine process")
        for seat in (self._apart, *self._trial_seats):
            seat.vacate(process)

    async def _refilled(self) -> None:
        """Start the next main engine, before a statement has to wait for it."""
        with suppress(UnavailableError):
            await self._main.ready()


class _Run:
    """One statement: where it runs first, and where again."""

    def __init__(self, engines: Engines, query_id: QueryId, statement: Statement) -> None:
        self._engines = engines
        self._query_id = query_id
        self._statement = statement
        self._key = suspects.key(statement.sql, statement.parameters)
        self._leave: Callable[[], None] = lambda: None

    async def begin(self) -> BatchStream:
        """Begin the statement, once more where its engine ends at once."""
        self._engines.suspects.check(self._key)
        if self._engines.runs_in_main(self._key):
            try:
                return await self._engines.begin(
                    self._engines.main, self._query_id, self._statement
                )
            except SilentError:
                pass
            except EngineLostError as exc:
                if exc.cause is Cause.CLOSED:
                    raise
        return await self.begin_alone()

    async def begin_alone(self) -> BatchStream:
        """Begin the statement in a process that runs nothing else."""
        self._engines.suspects.check(self._key)
        seat, self._leave = await self._engines.trials.take()
        try:
            await seat.newest()
            began_s = time.monotonic()
            stream = await self._engines.begin(seat, self._query_id, self._statement)
        except BaseException:
            self._leave()
            raise
        self._engines.long_planning.took(self._key, time.monotonic() - began_s)
        return stream

    def end(self, *, is_whole: bool) -> None:
        self._leave()
        if is_whole:
            self._engines.suspects.cleared(self._key)


def _ignore(*, is_whole: bool) -> None:
    """Do nothing at the end of a stream."""
