"""Plans statements, and caches the plans while the tables of the session stay the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from datafusion.substrait import Producer
from substrait.plan_pb2 import Plan as Substrait

from caraway_core.errors import InvalidQueryError, QueryForbiddenError, SourceNotReadError
from caraway_core.ids import TableName
from caraway_core.sqltext import explained
from caraway_core.statements import MERGES, Statement, TableWrite
from caraway_core.statements.searches import StatementSearch
from caraway_engine.execution import frugal
from caraway_engine.known_faults import PlannedStatement, leaves, names
from caraway_engine.rows import coercion
from caraway_engine.searching import embedding
from caraway_engine.sessions import answered, distribution, plans, writes
from caraway_engine.sessions.analyses import Analyses
from caraway_engine.sessions.framing import READ_WRITE, StatementFraming
from caraway_engine.sessions.plans import KeptPlans, Startable, StatementPlan
from caraway_engine.sessions.positions import Positions
from caraway_engine.sessions.registered import READ_ONLY, Registered
from caraway_engine.sessions.reruns import Reruns, is_wide_listing
from caraway_engine.sessions.versions import Shown, Views
from caraway_engine.statements import plan_facts, scalars, statements, viewing
from caraway_engine.statements.plan_facts import Operation, PlanFacts
from caraway_engine.table_functions import stand_ins

_LISTINGS = frozenset(
    {TableName("information_schema.schemata"), TableName("information_schema.df_settings")}
)
_EXPLAINED = (Operation.EXPLAIN, Operation.ANALYZE)


class StatementPlanner:
    """Plans statements over the registered tables."""

    def __init__(self, registered: Registered) -> None:
        self._registered = registered
        self._versions = registered.versions
        self._contexts = registered.contexts
        self._kept = KeptPlans()
        self.reruns = Reruns(registered.contexts, registered.facts_of)
        self._answered = answered.AnsweredPlans(registered)
        self._analyses = Analyses(registered, self._kept, self._answered, self.reruns)
        self._positions = Positions(registered.scratch, registered.views)
        self._framing = StatementFraming(registered, self._positions)

    def startable(self, statement: Statement) -> Startable:
        """Plan a statement, and check that the rows that it reads are in memory.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            QueryError: it cannot be planned.
        """
        with self._read(statement) as read:
            return self._startable(read)

    def _startable(self, statement: Statement) -> Startable:
        plan = self._plan(statement)
        views = self._versions.views(plan.stored, statement.logs)
        if shown := {**views, **self._pruned(statement, plan, views)}:
            plan = self._positioned(statement, plan, shown, has_changes=bool(views))
        self._versions.fill(plan.stored, plan.views)
        try:
            schema = self._schema(plan)
            if statement.defines is not None:
                return self._answered.defining(plan, schema, statement.defines)
            if table := self._registered.written(plan.facts):
                if self._registered.is_replaced(plan.facts):
                    over = partial(self._framing.over, statement, plan.facts)
                    return self._answered.replacing(plan, schema, table, over)
                if plan.facts.changes_rows:
                    return self._answered.changing(plan, schema, table)
                if plan.facts.write and plan.facts.write.name in MERGES:
                    rows = partial(self._framing.part, statement)
                    return self._answered.merging(plan, schema, table, rows)
                return self._answered.inserting(plan, schema, table)
            if self._registered.is_folder(plan.facts):
                return self._answered.inserting_files(plan, schema)
            if not shown and self._registered.reads_remote(plan.facts):
                with viewing.limits_of(statement):
                    startable = self._answered.startable(plan, schema)
                    if plan.facts.operation not in _EXPLAINED or plan.facts.write:
                        return startable
                    asked = explained.parse(statement.sql)
                    behind = replace(statement, sql=asked.statement) if asked else None
                    return (
                        self._answered.explained(startable, self._plan(behind))
                        if behind
                        else startable
                    )
        except BaseException as exc:
            raise self._registered.translate(exc, planning=False) from exc
        again = partial(frugal.start, self._contexts, plan.dataframe)
        if plan.facts.operation in _EXPLAINED and not shown and not plan.facts.write:
            if (explaining := self._ordered_explain(statement, schema)) is not None:
                return Startable(plan, schema, explaining.execute_stream)
        # Retrying needs the default settings, so a plan with settings off runs only once.
        is_plain = not plan.is_product and not plan.settings_off
        may_repeat = plan.effect.written is None and is_plain
        start = partial(self.reruns.start, plan)
        if plan.stored and plan.facts.names_columns_only:
            (read,) = plan.stored
            rows = partial(self._versions.listed, read, plan.views)
            dataframe = self.reruns.dataframe(plan)
            start = partial(frugal.start_whole_read, self._contexts, dataframe, rows)
        if not plan.facts.functions.isdisjoint(embedding.CALLING):
            # Threads of the engine wait for models as they do for databases. Calls of models are
            # not free, so that none begins before it is known where the statement runs.
            from caraway_engine.remote import streams

            dataframe = plan.dataframe
            if is_plain:
                logical = dataframe.logical_plan()
                dataframe = self._contexts.calling.create_dataframe_from_logical_plan(logical)
            late = partial(streams.LateStream, dataframe.execute_stream)
            return Startable(plan, schema, late, is_waiting=True)
        return Startable(plan, schema, start, again if may_repeat else None)

    def _ordered_explain(self, statement: Statement, schema: pa.Schema) -> Any:
        """Return what explains the plan of a statement whose joins are ordered, or None."""
        asked = explained.parse(statement.sql)
        if asked is None or asked.has_format:
            return None
        behind = self._plan(replace(statement, sql=asked.statement))
        try:
            self._versions.fill(behind.stored)
            made = self.reruns.explained(behind, asked)
        except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
            return None
        return made if made is not None and pa.schema(made.schema()) == schema else None

    def analyse(self, statement: Statement) -> distribution.Analysis:
        """Plan and analyse a statement for a cluster, without running it.

        Raises:
            QueryError: it cannot be planned.
        """
        with self._read(statement) as read:
            return self._analyses.analysis(self._plan(read), read)

    def staged(
        self, statement: Statement, analysis: distribution.Analysis
    ) -> distribution.Analysis:
        """Return the analysis of a statement that runs in stages; see `Analyses.staged`."""
        plan = self.kept(statement)
        return analysis if plan is None else self._analyses.staged(plan, analysis)

    def kept(self, statement: Statement) -> StatementPlan | None:
        """Return the cached plan of a statement, or None. Never blocks."""
        return self._kept.recall(key) if (key := plans.key_of(statement)) else None

    def recall(self, statement: Statement) -> distribution.Analysis | None:
        """Return the cached result of `analyse`, or None. Never blocks."""
        return self._kept.analysis(plan) if (plan := self.kept(statement)) else None

    def probed(self, sql: str) -> tuple[Substrait, pa.Schema]:
        """Plan a statement exactly as written, and return its Substrait plan and schema.

        Raises:
            QueryError: it cannot be planned.
        """
        context = self._contexts.main
        try:
            with viewing.without_sources():
                dataframe = context.sql(sql, options=READ_ONLY)
            encoded = Producer.to_substrait_plan(dataframe.logical_plan(), context).encode()
            plan = Substrait()
            plan.ParseFromString(encoded)
            return plan, coercion.schema(context, dataframe)
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc

    def _schema(self, plan: StatementPlan) -> pa.Schema:
        schema = self._kept.schema(plan)
        is_merge = plan.facts.write is not None and plan.facts.write.name in MERGES
        # The optimizer takes no MERGE with correlated subqueries, which runs as another plan.
        if schema is None and (is_merge or is_wide_listing(plan)):
            schema = pa.schema(plan.dataframe.schema())
            self._kept.note_schema(plan, schema)
        elif schema is None:
            optimized = self.reruns.optimized(plan)
            schema = coercion.schema(self._contexts.main, plan.dataframe, optimized)
            self._kept.note_schema(plan, schema)
        return schema

    def write_of(self, statement: Statement) -> TableWrite | None:
        """Return what a statement writes, or None. Checks no permissions.

        Raises:
            QueryError: it cannot be planned.
        """
        try:
            with viewing.limits_of(statement), self._read(statement) as read:
                dataframe = self._framing.frame(read, READ_WRITE).dataframe
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc
        facts = plan_facts.of(dataframe.logical_plan())
        return facts.write if facts.operation is Operation.WRITE else None

    def searches(self, statement: Statement) -> tuple[StatementSearch, ...]:
        """Return the searches whose rows a statement reads.

        Raises:
            QueryError: a call is wrong, or the statement cannot be planned.
        """
        options = READ_WRITE if statement.writable else READ_ONLY
        try:
            with self._registered.inputs.holding(statement.given):
                return self._registered.searches.planned(
                    statement, lambda each: self._framing.frame(each, options)
                )
        except BaseException as exc:
            with viewing.limits_of(statement):
                error = self._registered.translate(exc, planning=True)
            error.message = stand_ins.without_schemas(error.message)
            raise statements.refined(error, may_write=statement.may_write) from exc

    @contextmanager
    def _read(self, statement: Statement) -> Iterator[Statement]:
        """Show the rows that came with a statement, and those of its searches."""
        with self._registered.inputs.holding(statement.given):
            with self._registered.searches.reading(statement) as read:
                yield read

    def _plan(self, statement: Statement) -> StatementPlan:
        if plan := self.kept(statement):
            return plan
        options = READ_WRITE if statement.writable and not statement.defines else READ_ONLY
        try:
            with viewing.limits_of(statement):
                framed = self._framing.frame(statement, options)
            dataframe = framed.dataframe
            facts = plan_facts.of(dataframe.logical_plan())
            is_listing = not _LISTINGS.isdisjoint(facts.scans)
            leaves_off = leaves.forbidden(self._contexts.main, dataframe.logical_plan(), facts)
            safe = names.without(self._contexts.main, dataframe, leaves_off)
            found = None if leaves_off else framed.optimized
            joined = found or self._registered.joined(safe, facts)
            joins = plan_facts.optimized(joined, facts) if joined else plan_facts.WITHOUT_JOINS
            is_product = joins.has_product
            context = self._contexts.serial if is_product else self._contexts.main
            settings_off = leaves_off | (names.forbidden(context, joined) if joined else set())
            if is_listing:
                # This context has one partition, as the context for products does.
                dataframe, is_product = self._described(statement, framed, facts), True
            else:
                dataframe = self._framing.runnable(
                    dataframe,
                    is_product=is_product,
                    may_spill=joins.may_spill,
                    settings_off=settings_off,
                )
            if facts.changes_rows:
                logical = dataframe.logical_plan()
                dataframe = self._contexts.changing.create_dataframe_from_logical_plan(logical)
        except BaseException as exc:
            with viewing.limits_of(statement):  # A message names only what it may read.
                error = self._registered.translate(exc, planning=True)
            raise statements.refined(error, may_write=statement.may_write) from exc
        if statement.readable is not None:
            found = {each.name for each in statement.found or ()}
            statements.check_reads(facts, self._registered.behind(statement.readable) | found)
        if statement.found:
            joined = joined or dataframe.optimized_logical_plan()
        self._registered.searches.check(statement, facts, joined)
        is_explained = facts.operation is Operation.EXPLAIN
        if is_explained and facts.write and facts.write.table in self._versions:
            raise InvalidQueryError(
                f"EXPLAIN does not show writes to dataset '{facts.write.table}', which is "
                "accelerated; explain the query of the statement"
            )
        statements.check(writes.retargeted(facts, statement.targets), statement.writable)
        writes.check(facts, self._registered.snapshot.tables, statement.targets)
        facts = writes.retargeted(facts, statement.targets)
        is_here = self._registered.written(facts) is None
        if facts.changes_rows and is_here and self._changes_nothing(dataframe):
            dataframe, joined = writes.nothing(self._contexts.main), None
        if statement.bound and facts.scans.keys().isdisjoint(statement.bound.values()):
            raise SourceNotReadError("the statement reads no dataset that its source may answer")
        effect = statements.effect(facts, statement.defines)
        if effect.written is not None and effect.written in self._versions:
            raise QueryForbiddenError(
                f"dataset '{effect.written}' is accelerated: change its rows at the source, "
                "and refresh it"
            )
        files, stored = self._registered.files(facts), self._registered.stored(facts)
        plan = StatementPlan(
            dataframe,
            facts,
            effect,
            is_product,
            files,
            stored,
            {},
            framed.sql,
            settings_off,
            joined,
            joins.may_spill,
        )
        if (key := plans.key_of(statement)) and plan.effect.reads_only_catalog:
            self._kept.remember(key, plan)
        return plan

    def _changes_nothing(self, dataframe: object) -> bool:
        # Optimizing computes constants, which may fail.
        try:
            return writes.changes_nothing(dataframe)
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc

    def _described(self, statement: Statement, framed: PlannedStatement, facts: PlanFacts) -> Any:
        """Plan a listing of schemas or settings in a context without internal schemas.

        Raises:
            InvalidQueryError: it also reads datasets.
        """
        if others := sorted(name for name in facts.scans if not plan_facts.is_system(name)):
            raise InvalidQueryError(
                f"the statement reads '{others[0]}' and a list of schemas or settings; "
                "use two statements"
            )
        context = self._registered.described()
        values = scalars.values(statement.parameters)
        return context.sql(framed.sql, options=READ_ONLY, param_values=values)

    def _pruned(self, statement: Statement, plan: StatementPlan, views: Views) -> Shown:
        """Return the partitions that a statement needs, for tables that can be pruned."""
        tables = self._versions.prunable(plan.stored)
        if not tables or plan.effect.written is not None:
            return {}
        analysis = self._analyses.analysis(plan, statement)
        # Without a plan to analyse, keep every partition.
        return {} if analysis.plan is None else self._versions.pruned(
            tables, analysis.filters, views
        )  # fmt: skip

    def _positioned(
        self, statement: Statement, plan: StatementPlan, views: Shown, *, has_changes: bool
    ) -> StatementPlan:
        """Plan a statement over its tables at the log positions that it names."""
        key = plans.key_of(statement)
        if key and (known := self._positions.recall(key, views)):
            return known
        options = READ_WRITE if statement.writable else READ_ONLY
        try:
            with viewing.limits_of(statement):
                dataframe = self._framing.dataframe(statement, plan.sql, views, options)
            dataframe = self._framing.runnable(
                dataframe,
                is_product=plan.is_product,
                may_spill=plan.may_spill,
                settings_off=plan.settings_off,
            )
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc
        reads_only_catalog = plan.effect.reads_only_catalog and not has_changes
        effect = replace(plan.effect, reads_only_catalog=reads_only_catalog)
        statement_plan = replace(
            plan, dataframe=dataframe, effect=effect, views=views, optimized=None
        )
        if key and plan.effect.reads_only_catalog:
            self._positions.remember(key, statement_plan)
        return statement_plan
