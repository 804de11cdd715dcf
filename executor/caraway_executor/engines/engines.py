"""The engine processes of a runtime: assigns statements, retries them, and refuses suspects."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from caraway_core import suspects
from caraway_core.concurrency import tasks
from caraway_core.errors import UnavailableError
from caraway_core.ids import QueryId, TableName
from caraway_core.process import write_marks
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.engines import EngineReport, EngineStatus
from caraway_core.protocols.fleet import Task
from caraway_core.statements import CatalogSnapshot, Statement, ViewFacts
from caraway_core.statements.definitions import TableDefinition
from caraway_core.statements.questions import CommitQuestion
from caraway_core.suspects import End, Suspects
from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    EngineMovedError,
    NotBegunError,
    SilentError,
)
from caraway_executor.engines.crossing import CrossingTables
from caraway_executor.engines.forking import Forking, ForkingShare
from caraway_executor.engines.kept_rows import KeptRows
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.rerunning import FindCommit, RerunStream
from caraway_executor.engines.seats import Seat
from caraway_executor.engines.starting import ForkServer
from caraway_executor.engines.trials import LongPlanning, Trials
from caraway_executor.engines.watching import Watch
from caraway_executor.engines.works import key_of
from caraway_executor.resources import usage
from caraway_executor.statements.elsewhere import RunsApartError, RunsInMainError

logger = logging.getLogger(__name__)
_TRIALS = 3
_MOST_MOVES = 20
_Result = TypeVar("_Result")


class Engines:
    """Runs statements in engine processes.

    The main process runs most of them. Products run apart, because they do not stop when cancelled.
    Statements that ran while an engine process ended are retried on trial, each alone.
    """

    def __init__(
        self,
        main: EngineOptions,
        apart: EngineOptions,
        server: ForkServer | None = None,
        shared: Forking | None = None,
    ) -> None:
        """Take the options of the processes; the memory limits apply to each process.

        They are started by their own fork server, or by one that is `shared`.
        """
        self.suspects = Suspects(time.time)
        self.restarts: Counter[Cause] = Counter()
        self._forking = ForkingShare(shared, self._lost) if shared else Forking(self._lost, server)
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
        """The seat of the main process."""
        return self._main

    @property
    def seats(self) -> tuple[Seat, ...]:
        """All seats: main, apart and trials."""
        return self._main, self._apart, *self._trial_seats

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of all views in the catalog that new statements see."""
        return self._main.views

    @property
    def processes(self) -> list[EngineProcess]:
        """All engine processes."""
        return [process for seat in self.seats for process in seat.processes]

    async def install(self, catalog: CatalogSnapshot) -> Mapping[TableName, str]:
        """Make a catalog visible to new statements; return why tables could not be built."""
        self._watch.start_watching()
        self._note(catalog)
        return await self._main.install(catalog)

    async def execute(
        self, query_id: QueryId, statement: Statement, *, is_suspect: bool = False
    ) -> BatchStream:
        """Run a statement; retry it once, alone, if its engine ends before its first row.

        One that `is_suspect` runs alone from the start.

        Raises:
            StatementRefusedError: it ended engine processes before.
            QueryError: it failed, or ended the engine process.
        """
        key = suspects.key(statement.sql, statement.parameters)
        run = _Run(self, key, "execute", query_id, statement)
        find_commit = partial(self._find_commit, statement.defines)
        return await self._run(run, is_suspect, find_commit=find_commit)

    async def run_task(
        self, task: Task, inputs: CrossingTables, *, is_suspect: bool = False
    ) -> BatchStream:
        """Run a task like a statement; see `execute`."""
        run = _Run(self, key_of(task), "run", task, inputs)
        return await self._run(run, is_suspect, has_names=False)

    async def _run(
        self,
        run: "_Run",
        is_suspect: bool,
        *,
        has_names: bool = True,
        find_commit: FindCommit | None = None,
    ) -> BatchStream:
        try:
            stream = await (run.begin_alone() if is_suspect else run.begin_statement())
        except EngineLostError as exc:
            raise exc.told(wrote=False) from exc
        return RerunStream(
            stream, run.begin_again, run.end, has_names=has_names, find_commit=find_commit
        )

    async def _find_commit(
        self, defines: TableDefinition | None, table: TableName, mark: str
    ) -> int | None:
        question = CommitQuestion(Statement("", {}, defines=defines, mark=mark), table)
        return await write_marks.found(lambda: self.call("ask", question))

    async def prepare(
        self, catalog: CatalogSnapshot
    ) -> tuple[Mapping[TableName, str], Mapping[TableName, ViewFacts]]:
        """Register a catalog; statements see it after `publish`."""
        self._watch.start_watching()
        return await self._main.prepare(catalog)

    async def publish(self) -> None:
        """Make the last prepared catalog visible to new statements."""
        self._note(await self._main.publish())

    def _note(self, catalog: CatalogSnapshot) -> None:
        for seat in (self._apart, *self._trial_seats):
            seat.note(catalog)

    async def ask(
        self, statement: Statement, method: str, *arguments: object
    ) -> tuple[Any, EngineProcess]:
        """Call a method about a statement; return the result, and the process that answered.

        It is called once more, apart, if the process ends in the meantime.

        Raises:
            StatementRefusedError: the statement ended engine processes before.
            CarawayError: it failed, or ended the engine process.
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
        seat, leave = await self.trials.await_seat()
        try:
            await seat.idle()
            began_s = time.monotonic()
            answer = await self._moved(seat, lambda each: each.call(method, *arguments))
            self.long_planning.took(key, time.monotonic() - began_s)
        except EngineLostError as exc:
            raise exc.told(wrote=False) from exc
        finally:
            leave()
        return answer

    def runs_in_main(self, key: str) -> bool:
        """Return whether a statement may run next to others."""
        return self.suspects.find(key) is None and key not in self.long_planning

    async def begin_statement(self, seat: Seat, method: str, *arguments: object) -> BatchStream:
        """Start a statement in the process of a seat, or in the process that must run it."""

        async def opened(process: EngineProcess) -> BatchStream:
            return await process.open(method, *arguments)

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
        """Let a process do work, or the next process if that one has not started it."""
        for _ in range(_MOST_MOVES):
            process = await (seat.ready() if seat is self._main else seat.newest())
            try:
                return await work(process), process
            except NotBegunError:
                continue
        raise UnavailableError("the engine was replaced too often; try again")

    async def tell(self, method: str, *arguments: object) -> None:
        """Call a method of each process, ignoring failures."""
        for process in self.processes:
            with suppress(EngineLostError, NotBegunError):
                await process.call(method, *arguments)

    async def open(self, method: str, *arguments: object) -> BatchStream:
        """Start a stream of repeatable work, and restart it if its engine ends."""

        async def begin(_lost: EngineLostError | None = None) -> BatchStream:
            stream, _ = await self._moved(self._main, lambda each: each.open(method, *arguments))
            return stream

        try:
            stream = await begin()
        except EngineLostError:
            stream = await begin()
        return RerunStream(stream, begin, _ignore)

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the main engine process; retry if it ends in the meantime.

        Raises:
            CarawayError: it failed, or engine processes end during it.
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
        """Return the state of the engine processes."""
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

    async def warm(self) -> None:
        """Start the main process before a statement has to wait for it, unless it is there."""
        with suppress(UnavailableError):
            await self._main.ready()

    def rest(self) -> None:
        """End all processes once they have no work; the next statement starts another one."""
        for seat in self.seats:
            for process in seat.processes:
                seat.retire(process)

    def close(self) -> None:
        """End all engine processes."""
        self._is_closed = True
        self._watch.close()
        self._tasks.cancel()
        self._forking.close()

    def _lost(self, process: EngineProcess) -> None:
        """Handle the end of a process: record suspects, fail its work, and start another one."""
        cause = process.cause or Cause.CRASH
        works = list(process.works.values())
        if cause.blamed is not None:
            stopped = [each for each in works if each.is_stopped]
            # If it hung, only the cancelled work is to blame; the rest ran next to it.
            blamed = stopped if cause is Cause.HUNG and stopped else works
            keys = {key for each in blamed if each.is_begun and (key := each.key)}
            if keys:
                self.suspects.ended(keys, End(cause.blamed, process.detail))
            self.restarts[cause] += 1
            logger.error(
                "engine process ended",
                extra={"cause": cause.value, "detail": process.detail, "statements": len(works)},
            )
        process.fail_all()
        if self._main.vacate(process) and not self._is_closed:
            self._tasks.spawn(self.warm(), "replace an engine process")
        for seat in (self._apart, *self._trial_seats):
            seat.vacate(process)


class _Run:
    """One statement or task: where it runs first, and where it is retried."""

    def __init__(self, engines: Engines, key: str, method: str, *arguments: object) -> None:
        self._engines = engines
        self._key = key
        self._method = method
        self._arguments = arguments
        self._leave: Callable[[], None] = lambda: None

    async def begin_statement(self) -> BatchStream:
        """Start the statement, and retry once if its engine ends immediately."""
        self._engines.suspects.check(self._key)
        if self._engines.runs_in_main(self._key):
            try:
                return await self._engines.begin_statement(
                    self._engines.main, self._method, *self._arguments
                )
            except SilentError:
                pass
            except EngineLostError as exc:
                if exc.cause is Cause.CLOSED:
                    raise
        return await self.begin_alone()

    async def begin_again(self, lost: EngineLostError) -> BatchStream:
        """Start the statement again: alone, unless others kept the threads of its process."""
        return await (
            self.begin_statement() if isinstance(lost, EngineMovedError) else self.begin_alone()
        )

    async def begin_alone(self) -> BatchStream:
        """Start the statement in a process of its own."""
        self._engines.suspects.check(self._key)
        seat, self._leave = await self._engines.trials.await_seat()
        try:
            await seat.idle()
            began_s = time.monotonic()
            stream = await self._engines.begin_statement(seat, self._method, *self._arguments)
        except BaseException:
            self._leave()
            raise
        self._engines.long_planning.took(self._key, time.monotonic() - began_s)
        return stream

    def end(self, *, is_whole: bool) -> None:
        """Free the seat, and clear the suspicion if the result was complete."""
        self._leave()
        if is_whole:
            self._engines.suspects.cleared(self._key)


def _ignore(*, is_whole: bool) -> None:
    """Do nothing at the end of a stream."""
