"""Sessions: each makes one catalog snapshot readable by SQL. Built once, then read-only."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import pyarrow as pa

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.statements import CatalogSnapshot, GivenRows, Statement, TableWrite, ViewFacts
from caraway_core.statements.questions import (
    Answer,
    ParameterQuestion,
    SearchQuestion,
    SqlQuestion,
    StatementQuestion,
    WriteQuestion,
)
from caraway_core.statements.searches import StatementSearch
from caraway_core.work import SourceQuery
from caraway_engine import stored
from caraway_engine.execution import streams
from caraway_engine.execution.contexts import Pools
from caraway_engine.execution.crowd import Crowd
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.execution.streams import EngineStream, OwnStream, StartedPlan
from caraway_engine.rows import plain
from caraway_engine.rows.held import Chunks
from caraway_engine.scans import presence
from caraway_engine.sessions import client_plans, parameters
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.lookups import Lookups
from caraway_engine.sessions.planning import StatementPlanner
from caraway_engine.sessions.plans import Startable
from caraway_engine.sessions.registered import Note, Registered, ignore
from caraway_engine.sessions.short_results import ShortResults
from caraway_engine.sessions.task_plans import TaskPlanner
from caraway_engine.sharing import shares
from caraway_engine.stages.stage_schemas import StageSchemas
from caraway_engine.statements.statements import Effect
from caraway_engine.table_functions import stand_ins


class Session:
    """Runs statements and tasks over the tables of one snapshot.

    `chunks` are the chunks of accelerated datasets in memory. `pools` may be shared between
    sessions; they bound the memory of the statements of all of them.
    """

    def __init__(
        self,
        settings: EngineSettings,
        snapshot: CatalogSnapshot,
        chunks: Chunks | None = None,
        pools: Pools | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._registered = Registered(settings, snapshot, chunks, pools)
        self._statements = StatementPlanner(self._registered)
        self._tasks = TaskPlanner(self._registered)
        self._short = ShortResults(self._registered.fixed_files)
        self.versions = self._registered.versions
        self.lookups = Lookups(snapshot.tables, self._statements.probed)

    def install(
        self,
        *previous: "Session | None",
        versions: Iterable[stored.StoredVersion] = (),
        note: Note = ignore,
    ) -> dict[TableName, str]:
        """Register every table; reuse tables that are unchanged since one of `previous`.

        Also reuses `versions` of accelerated datasets, whose rows may be partly in memory. Returns
        why tables could not be registered, by table name.
        """
        earlier = [each._registered for each in previous if each]
        return self._registered.install(earlier, versions, note)

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of each view: the tables that it reads, or the table that is missing."""
        known = self._registered
        return {
            **{name: ViewFacts(missing=table) for name, table in known.lacking.items()},
            **{name: ViewFacts(known.tables_behind(name), searches=name in known.searching)
               for name in known.views},
        }  # fmt: skip

    @property
    def crowd(self) -> Crowd:
        """The statements of this and other sessions that compute rows at this moment."""
        return self._registered.contexts.crowd

    def start(self, statement: Statement) -> EngineStream:
        """Plan a statement and start running it. Blocks while files are listed.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            QueryError: it cannot be planned or started.
        """
        return self._begin(self._statements.startable(statement), self._short)

    def is_instant(self, statement: Statement) -> bool:
        """Return whether starting a statement takes no longer than to wake a thread for it."""
        if statement.logs:
            return False
        plan = self._statements.kept(statement)
        return plan is not None and self._short.is_instant(plan)

    def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> EngineStream:
        """Begin the work of a task, after a fragment is planned; blocks while files are listed.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            QueryError: it cannot be planned or started, or its schema is not the task's.
        """
        own = _own_work(task)
        if own is not None:
            effect = Effect(written=None, reads_only_catalog=False)
            return EngineStream(StartedPlan(own, task.schema, effect), self._translate)
        startable = self._tasks.startable(task, inputs)
        stream = self._begin(startable)
        if task.is_profiled and (executed := startable.executed) is not None:
            stream.traits.profile = lambda: TaskProfile(operators=streams.operators(executed()))
        return stream

    def let_go(self) -> None:
        """Release rows that were not read recently, and plans that keep such rows in memory."""
        self._tasks.forget_unused()
        for version in self.versions:
            version.let_go()

    def pieces(self, table: TableName) -> tuple[shares.ListedPiece, ...] | None:
        """List the files that a table is read from now, or return None if it cannot be shared.

        Raises:
            QueryError: they cannot be listed.
        """
        return self._tasks.pieces(table)

    def analyse(self, statement: Statement) -> Analysis:
        """Plan and analyse a statement for a cluster, without running it.

        Raises:
            QueryError: it cannot be planned.
        """
        return self._statements.analyse(statement)

    def staged(self, statement: Statement, analysis: Analysis) -> Analysis:
        """Return the analysis of a statement that runs in stages, with its joins in a good order.

        `analysis` is that of its plan as it is. Blocks.
        """
        return self._statements.staged(statement, analysis)

    def answer(self, question: StatementQuestion[Answer]) -> Answer:
        """Answer a question about a statement.

        Raises:
            QueryError: the statement cannot be planned, or what is asked cannot be answered.
        """
        of = question.statement
        answer: Any
        match question:
            case WriteQuestion():
                answer = self.write_of(of)
            case ParameterQuestion():
                answer = self.parameters(of)
            case SqlQuestion():
                answer = self.sql_of(of, question.plan)
            case SearchQuestion():
                answer = self.searches(of)
            case _:
                raise TypeError(f"no engine answers a {type(question).__name__}")
        return cast("Answer", answer)

    def write_of(self, statement: Statement) -> TableWrite | None:
        """Return what a statement writes, or None. Checks no permissions.

        Raises:
            QueryError: it cannot be planned.
        """
        return self._statements.write_of(statement)

    def parameters(self, statement: Statement) -> Mapping[str, pa.DataType]:
        """Return the types of a statement's parameters; null where none can be inferred.

        Raises:
            QueryError: it cannot be planned without values.
        """
        return parameters.types(self._registered, statement)

    def sql_of(self, statement: Statement, plan: bytes) -> str:
        """Write a Substrait plan as SQL, with the limits of a statement.

        Raises:
            QueryError: it cannot be written as SQL that means the same.
        """
        return client_plans.sql_of(self._registered, statement, plan)

    def searches(self, statement: Statement) -> tuple[StatementSearch, ...]:
        """Return the searches whose rows a statement reads; they run before it.

        Raises:
            QueryError: a call is wrong, or the statement cannot be planned.
        """
        return self._statements.searches(statement)

    def recall(self, statement: Statement) -> Analysis | None:
        """Return the cached result of `analyse`, or None. Never blocks."""
        return self._statements.recall(statement)

    def stage_schemas(self, found: Sequence[GivenRows] = ()) -> StageSchemas:
        """Return the schemas and plan texts that one run of the stage planner asks for.

        `found` are the rows of the searches of its statement.
        """
        known = self._registered
        showing = partial(stand_ins.shown_rows, found)
        return StageSchemas(known.contexts.main, known.inputs, showing)

    def _begin(self, startable: Startable, short: ShortResults | None = None) -> EngineStream:
        plan, read, on_whole = startable.plan, None, None
        try:
            presence.check(plan.files, self._registered.physical_plan)
            if short is None:
                stream = startable.start()
            else:
                stream, read = short.start_plan(startable)
                on_whole = self._statements.reruns.watch(plan, short.watch(startable, stream))
        except BaseException as exc:
            raise self._translate(exc) from exc
        started = StartedPlan(
            stream,
            startable.schema,
            plan.effect,
            plan.is_product,
            startable.is_waiting,
            (plan.views, startable.holds),
            startable.start_again,
            read,
        )
        # Pass the bound method: it keeps the session alive as long as the stream.
        return EngineStream(started, self._translate, on_whole=on_whole, crowd=self.crowd)

    def _translate(self, exc: BaseException, *, planning: bool = False) -> QueryError:
        return self._registered.translate(exc, planning=planning)


def _own_work(task: Task) -> OwnStream | None:
    """Begin the work of a task that is a statement for a database.

    Never blocks. Returns None if the engine has a part in the work.

    Raises:
        ExecutionError: the columns are not those that the task says.
    """
    if not isinstance(task.work, SourceQuery):
        return None
    # Here: pyarrow's datasets are slow to import, and few tasks need them.
    from caraway_engine.remote import streams

    plain.check_same(task.work.schema, task.schema)
    return streams.answered(task.work, task.schema)
