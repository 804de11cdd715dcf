"""Decides how statements run on a cluster, using the sessions of one process."""

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from caraway_core.errors import InvalidQueryError, NotDistributableError, OutOfMemoryQueryError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.fleet import Share
from caraway_core.sqltext import explained
from caraway_core.tables import TableSpec
from caraway_engine.routing.decisions import (
    Decision,
    Described,
    Explained,
    Here,
    NoneReady,
    Staged,
    Whole,
)
from caraway_engine.routing.facts import CatalogFacts
from caraway_engine.routing.held import HeldPlanners, StagedStatement
from caraway_engine.routing.protocol import PlanId, Question
from caraway_engine.routing.repeated import RepeatedPlanner, RepeatedPlanners
from caraway_engine.sessions import plans
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import dealing, pruning
from caraway_engine.sharing.pruning import Facts, Reads
from caraway_engine.stages import Measured, StageGraph
from caraway_engine.stages.planner import Planner
from caraway_engine.stages.visits import VISITS

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
Over = Callable[[CatalogVersion], Awaitable[Session]]
"""Returns the session of a catalog version; raises CatalogMovedError."""
_Made = tuple[Decision, StagedStatement | None]
"""The decision, and the planner if the statement runs in stages."""


class InThread(Protocol):
    """Runs blocking work in a thread."""

    def __call__(self, work: Callable[[], _Result], /) -> Coroutine[object, object, _Result]: ...


class Router:
    """Decides how statements run, and keeps the planners of statements in stages.

    Decides without a thread if the plan is cached and the statement does not run in stages.
    """

    def __init__(self, over: Over, in_thread: InThread) -> None:
        self._over = over
        self._in_thread = in_thread
        self._facts = CatalogFacts()
        self._held = HeldPlanners()
        self._planners = RepeatedPlanners()

    def __len__(self) -> int:
        """Return the number of planners that are kept."""
        return len(self._held)

    async def decide(self, question: Question) -> Decision:
        """See `Planning.decide`."""
        version = question.statement.catalog_version
        assert version is not None, "a scheduler names the catalog of each statement"
        session = await self._over(version)
        known = self._known(session, question)
        if known is not None:
            return known
        self._held.register_plan(question.plan)
        under_way: StagedStatement | None = None
        try:
            decision, under_way = await self._in_thread(partial(self._made, session, question))
        finally:
            if under_way is None:
                self._held.forget(question.plan)
            else:
                self._held.keep(question.plan, under_way)
        return decision

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """See `Planning.advance`."""
        under_way = self._held.planner_of(plan)
        under_way.graph = await self._in_thread(partial(_advanced, under_way, measured))
        return under_way.graph

    async def describe(self, plan: PlanId) -> Described:
        """See `Planning.describe`."""
        under_way = self._held.planner_of(plan)
        return await self._in_thread(partial(_described, under_way, under_way.graph))

    def forget(self, plan: PlanId) -> None:
        """See `Planning.forget`."""
        self._held.forget(plan)

    def _known(self, session: Session, question: Question) -> Decision | None:
        """Return the decision if it needs no planning, or None. Never blocks."""
        if question.may_look_up:
            found = session.lookups.find(question.statement)
            if found == "unknown":
                return None
            if found is not None:
                owned = self._facts.looked_up(session, found, question.workers)
                if owned is not None:
                    return owned
        analysis = session.recall(question.statement)
        if analysis is None or analysis.is_diagnostic:
            return None
        return self._unstaged(session, question, analysis)

    def _made(self, session: Session, question: Question) -> _Made:
        """Plan as much as the decision needs. Blocks."""
        statement = question.statement
        if question.may_look_up and session.lookups.find(statement) == "unknown":
            session.lookups.learn(statement)
            decision = self._known(session, question)
            if decision is not None:
                return decision, None
        analysis = session.analyse(statement)
        if analysis.is_diagnostic:
            return self._explained(session, question, analysis)
        unstaged = self._unstaged(session, question, analysis)
        if unstaged is not None:
            return unstaged, None
        return self._staged(session, question, analysis)

    def _explained(self, session: Session, question: Question, analysis: Analysis) -> _Made:
        """Decide how the statement inside an EXPLAIN runs."""
        asked = explained.parse(question.statement.sql)
        if asked is None:
            return Here(analysis.tables), None
        question = replace(question, statement=replace(question.statement, sql=asked.statement))
        analysis = session.analyse(question.statement)
        unstaged = self._unstaged(session, question, analysis)
        if isinstance(unstaged, Here):
            return unstaged, None
        if unstaged is not None:
            return Explained(unstaged, asked.is_run), None
        if not asked.is_run:
            return Explained(self._described(session, question, analysis), is_run=False), None
        staged, under_way = self._staged(session, question, analysis)
        return Explained(staged, is_run=True, is_verbose=asked.is_verbose), under_way

    def _unstaged(
        self, session: Session, question: Question, analysis: Analysis
    ) -> Here | NoneReady | Whole | None:
        """Return the decision for a statement that does not run in stages, or None."""
        specs, given = session.snapshot.tables, question.statement.given
        if given is not None:
            analysis = replace(analysis, tables=analysis.tables - {given.name})
        if analysis.reads_system or not analysis.tables:
            return Here(analysis.tables)
        if any(_is_in_memory(specs.get(table)) for table in analysis.tables):
            return Whole(analysis.tables, analysis.written, analysis.objection, is_at_owner=True)
        if not question.workers.executors:
            return NoneReady()
        if given is not None:
            return _whole(analysis, "it reads rows that came with it")
        if analysis.is_answered:
            return None
        cluster = self._facts.cluster(session, question.statement.logs, question.workers)
        return None if cluster.divided(analysis.reads) else _whole(analysis)

    def _staged(
        self, session: Session, question: Question, analysis: Analysis
    ) -> tuple[Staged | Whole, StagedStatement | None]:
        """Plan the stages of a statement as far as sizes are known, and divide its tables."""
        slots = tuple(map(str, question.workers.executors))

        def staged(under_way: StagedStatement) -> tuple[Staged, StagedStatement]:
            divided, filters = under_way.planner.divided, under_way.analysis.filters
            under_way.shares = _shares_of(session, divided, filters, slots)
            under_way.graph = _with_statements(under_way, under_way.graph)
            made = Staged(
                analysis.tables,
                analysis.schema,
                analysis.reads_only_catalog,
                under_way.graph,
                under_way.shares,
            )
            return made, under_way

        cut = self._cut(session, question, analysis, staged)
        return (cut, None) if isinstance(cut, Whole) else cut

    def _described(
        self, session: Session, question: Question, analysis: Analysis
    ) -> Described | Whole:
        """Describe the stages of a statement, using estimates for all sizes."""
        slots, specs = tuple(map(str, question.workers.executors)), session.snapshot.tables

        def described(under_way: StagedStatement) -> Described:
            # Splits of databases are known without a look at them, unlike files.
            divided = [
                table for table in under_way.planner.divided if _is_external(specs.get(table))
            ]
            under_way.shares = _shares_of(session, divided, {}, slots)
            graph = _foreseen(under_way.planner)
            return _described(under_way, _with_statements(under_way, graph))

        return self._cut(session, question, analysis, described)

    def _cut(
        self,
        session: Session,
        question: Question,
        analysis: Analysis,
        then: Callable[[StagedStatement], _Result],
    ) -> _Result | Whole:
        """Plan the stages of a statement and pass them to `then`, unless it has to run whole."""
        analysis = session.staged(question.statement, analysis)
        assert analysis.plan is not None
        cluster = self._facts.cluster(session, question.statement.logs, question.workers)
        try:
            schemas = session.stage_schemas(question.statement.found or ())
            plan = analysis.plan

            def planner_of(divided: frozenset[TableName]) -> Planner:
                return Planner(plan, cluster, schemas, divided, VISITS, analysis.joined_rows)

            key = plans.key_of(question.statement)
            planner = self._planners.planner(key, analysis, cluster, planner_of)
            graph = planner.advance({})
            under_way = StagedStatement(planner, graph, analysis, session.snapshot.tables)
            if not (_is_staged(graph) or _is_answered(under_way)):
                return _whole(analysis)
            return then(under_way)
        except (NotDistributableError, OutOfMemoryQueryError) as exc:
            logger.info("statement runs whole", extra={"plan": question.plan, "cause": exc.message})
            return _whole(analysis, exc.message)
        except InvalidQueryError as exc:
            # The statement itself could be planned, so the engine failed to decode the plan of a
            # part that it encoded. Run whole, the statement works or reports its own error.
            extra = {"plan": question.plan, "cause": exc.message}
            logger.warning("engine refused a part of a statement; it runs whole", extra=extra)
            return _whole(analysis, exc.message)


def _whole(analysis: Analysis, objection: str | None = None) -> Whole:
    return Whole(analysis.tables, analysis.written, objection or analysis.objection)


def _is_in_memory(spec: TableSpec | None) -> bool:
    return spec is not None and spec.first_rows is not None


def _is_external(spec: TableSpec | None) -> bool:
    return spec is not None and spec.is_external


def _advanced(under_way: StagedStatement, measured: Mapping[str, Measured]) -> StageGraph:
    return _with_statements(under_way, under_way.planner.advance(measured))


def _with_statements(under_way: StagedStatement, graph: StageGraph) -> StageGraph:
    """Have databases answer the stages that they can answer alone."""
    specs = under_way.specs
    if not any(_is_external(specs.get(table)) for table in under_way.analysis.tables):
        return graph
    # Here: pyarrow's datasets are slow to import, and few statements need them.
    from caraway_engine.remote import stage_statements

    return stage_statements.answered(graph, specs, under_way.shares)


def _is_answered(under_way: StagedStatement) -> bool:
    """Return whether a database answers the only task of a statement."""
    if not under_way.analysis.is_answered:
        return False
    root = _with_statements(under_way, under_way.graph).root
    return root is not None and bool(root.works)


def _is_staged(graph: StageGraph) -> bool:
    """Return whether the graph has more than one task."""
    return bool(graph.stages) or graph.root is None or graph.root.layout != "single"


def _shares_of(
    session: Session, tables: Collection[TableName], filters: Reads, slots: tuple[str, ...]
) -> Mapping[TableName, tuple[Share, ...]]:
    """List the files of the tables once for all tasks, and divide those that are needed.

    Blocks while files are listed.

    Raises:
        NotDistributableError: the files of a table cannot be divided.
        QueryError: they cannot be listed.
    """
    found = {}
    for table in tables:
        files = session.pieces(table)
        if files is None:
            raise NotDistributableError(f"the files of dataset '{table}' cannot be divided")
        spec = session.snapshot.tables.get(table)
        divided = tuple(
            Share(table, pieces) for pieces in dealing.assign_pieces(spec, files, slots)
        )
        if pruning.is_cut(spec) and table in filters:
            # Prune after dividing, because the division must not depend on the query.
            divided = tuple(pruning.pruned(spec, filters[table], share) for share in divided)
        found[table] = divided
    return found


def _foreseen(planner: RepeatedPlanner) -> StageGraph:
    """Plan all stages, using the estimates as the measured sizes."""
    sizes: dict[str, Measured] = {}
    graph = planner.advance(sizes)
    while graph.root is None:
        for name, stage in graph.stages.items():
            sizes.setdefault(name, Measured(0, stage.estimate_bytes))
        graph = planner.advance(sizes)
    return graph


def _described(under_way: StagedStatement, graph: StageGraph) -> Described:
    """Describe each stage, and how much of each divided table is read."""
    stages = [*graph.stages.values(), *([graph.root] if graph.root else [])]
    specs, filters = under_way.specs, under_way.analysis.filters
    tables = frozenset(table for stage in stages for table in stage.tables)
    return Described(
        under_way.analysis.tables,
        graph,
        {stage.name: under_way.planner.schemas.text(stage.plan) for stage in stages},
        {table: _partitions(specs.get(table), filters.get(table)) for table in tables},
    )


def _partitions(spec: TableSpec | None, reads: tuple[Facts, ...] | None) -> str:
    """Describe how many partitions of a table are read, or return "" if it has none."""
    if not pruning.is_cut(spec):
        return ""
    names = [each.name for each in dealing.pieces(spec)]
    wanted = pruning.kept(spec, reads, names) if reads is not None else names
    return f": {len(wanted)} of {len(names)} partitions"
