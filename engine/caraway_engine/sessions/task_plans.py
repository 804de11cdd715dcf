"""Plans the fragments that tasks run over their shares of tables."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.errors import ExecutionError, NotDistributableError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.work import SubstraitFragment
from caraway_engine.execution import contexts, frugal
from caraway_engine.remote import natively
from caraway_engine.rows import plain
from caraway_engine.scans import presence
from caraway_engine.scans.presence import FileStates
from caraway_engine.searching import embedding
from caraway_engine.sessions import sort_places
from caraway_engine.sessions.plans import Startable, StatementPlan
from caraway_engine.sessions.registered import Registered
from caraway_engine.sessions.repeated_tasks import Fragment, RepeatedTasks
from caraway_engine.sessions.spec_facts import is_external
from caraway_engine.sharing import kept_plans, shares, sharing, whole_files
from caraway_engine.sharing.kept_plans import KeptPlan
from caraway_engine.sharing.memory_files import NoMemoryFileError, PlanWithoutRows
from caraway_engine.sharing.sharing import RestrictedPlan
from caraway_engine.stages import fragments
from caraway_engine.statements import plan_facts
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.statements import Effect
from caraway_engine.stored import ChunksAwayError
from caraway_engine.table_functions import stand_ins


class TaskPlanner:
    """Plans tasks over the registered tables, and lists what can be shared among tasks."""

    def __init__(self, registered: Registered) -> None:
        self._registered = registered
        self._versions = registered.versions
        self._contexts = registered.contexts
        self._inputs = registered.inputs
        self._whole_files = whole_files.WholeFiles()
        self._repeated = RepeatedTasks(registered)
        self._listed: dict[TableName, tuple[FileStates, tuple[shares.ListedPiece, ...] | None]] = {}
        """The pieces of tables, and the states of their files before they were listed."""

    def pieces(self, table: TableName) -> tuple[shares.ListedPiece, ...] | None:
        """List the files that a table is read from now, or return None if it cannot be shared.

        Raises:
            QueryError: they cannot be listed.
        """
        if table not in self._registered.installed:
            return None
        if table in self._versions:
            return self._versions.by_name[table].pieces()
        spec, made = self._registered.installed[table]
        if spec.splits:
            return tuple(
                shares.ListedPiece(each.name, each.size_bytes, False, split=each)
                for each in spec.splits
            )
        if len(spec.scans) != 1 or made.kind == "view":
            return None
        places = presence.local_places((table,), self._registered.snapshot.tables)
        states = presence.states(places) if places else None
        known = self._listed.get(table)
        if known is not None and known[0] == states:
            return known[1]
        try:
            planning = self._contexts.unmeasured[self._contexts.main]
            plan = planning.sql(f"SELECT * FROM {contexts.quoted(table)}").execution_plan()
            pieces = sharing.listed(plan, spec)
        except BaseException as exc:
            raise self._registered.translate(exc, planning=False) from exc
        if states is not None:
            self._listed[table] = states, pieces
        return pieces

    def forget_unused(self) -> None:
        """Forget plans that keep rows in memory and were not used lately."""
        self._repeated.forget_unused()

    def startable(self, task: Task, inputs: Sequence[TaskTable]) -> Startable:
        """Plan a task, and check that the rows that it reads are in memory.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            NotDistributableError: its plan cannot read shares; the statement can run whole.
            QueryError: it cannot be planned, or its schema is not the task's.
        """
        try:
            with stand_ins.shown_rows(task.found):
                return self._startable(task, inputs)
        except (ChunksAwayError, NotDistributableError):
            raise
        except BaseException as exc:
            raise self._registered.translate(exc, planning=True) from exc

    def _startable(self, task: Task, inputs: Sequence[TaskTable]) -> Startable:
        fragment = self._fragment(task, inputs)
        if (version_plan := self._repeated.find(fragment)) is not None:
            self._fill_whole(version_plan.facts, task)
            return self._repeated.start(version_plan, task)
        key = self._repeated.key_of(fragment)
        if key is not None and (kept_plan := self._repeated.find_message(key)) is not None:
            with suppress(NoMemoryFileError):
                return self._started_again(kept_plan, fragment)
        return self._planned(fragment, key)

    def _fragment(self, task: Task, inputs: Sequence[TaskTable]) -> Fragment:
        """Make a fragment read the rows in memory and the splits of a task's shares."""
        assert isinstance(task.work, SubstraitFragment), "the engine plans only fragments"
        narrowed = self._versions.narrowed(task, task.work)
        task, plan, splits = self._without_splits(narrowed.task, narrowed.fragment)
        tables = {**narrowed.tables, **splits}
        return Fragment(task, plan, inputs, tables, narrowed.views, is_waiting=bool(splits))

    def _planned(self, fragment: Fragment, key: kept_plans.Key | None) -> Startable:
        """Plan a fragment, and keep its plan if the next task may use it."""
        task, inputs = fragment.task, fragment.inputs
        context = self._contexts.main
        tables = self._registered.snapshot.tables
        narrowed = self._whole_files.narrowed(fragment.plan, task.shares, tables)
        if narrowed:
            key = None
            tables_read = {**fragment.tables, **narrowed.tables}
            fragment = replace(fragment, plan=narrowed.fragment, tables=tables_read)
        dataframe = self._dataframe(context, fragment)
        facts = plan_facts.of(dataframe.logical_plan())
        self._fill_whole(facts, task)
        joins = self._registered.joins(dataframe, facts)
        is_product = joins.has_product
        is_calling = not facts.functions.isdisjoint(embedding.CALLING)
        if is_product:
            # The fragment is planned over tables, which only this context has.
            context = self._contexts.serial
            dataframe = self._dataframe(context, fragment)
            if not joins.may_spill:
                key = None  # A kept plan runs in the other context.
                context = self._contexts.unspilled
                dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        elif is_calling:
            key = None
            context = self._contexts.calling
            dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        elif (version_plan := self._repeated.keep(fragment, dataframe, facts)) is not None:
            return self._repeated.start(version_plan, task)
        elif self._may_sort_apart(dataframe):
            context = self._contexts.sorting
            dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        schema = pa.schema(dataframe.schema())
        plain.check_same(schema, task.schema)
        start = partial(natively.start, dataframe, self._registered.scratch)
        again = partial(frugal.start, self._contexts, dataframe)
        executed = dataframe.execution_plan  # It is the one that ran, if one did.
        # The files are looked at before they are listed for the plan.
        files = self._repeated.files(key, fragment, facts)
        if narrowed:
            whole_files.check_present(task.shares, fragment.tables, context)
        elif task.shares or files is not None:
            again = partial(self._start_shared_again, dataframe, facts, fragment)
            shared = self._shared(context, dataframe, facts, fragment)
            if key is not None and files is not None:
                of = None if inputs else dataframe
                with_rows = KeptPlan(
                    PlanWithoutRows(shared.message, ()), of, facts, schema, is_product, *files
                )
                kept = self._repeated.keep_message(key, fragment, shared.plan, with_rows)
                if kept is not None and inputs:
                    with suppress(NoMemoryFileError):
                        return self._started_again(kept, fragment)
            start = partial(context.execute, shared.plan, 0)
            executed = partial(_given, shared.plan)
        if is_waiting := fragment.is_waiting or is_calling:
            from caraway_engine.remote import streams  # Slow to import; few tasks need it.

            start = partial(streams.LateStream, start)
        effect = Effect(written=None, reads_only_catalog=False)
        present = self._registered.files(facts)
        plan = StatementPlan(
            dataframe, facts, effect, is_product, present, frozenset(), views=fragment.views
        )
        start_again = None if is_product else again
        return Startable(plan, schema, start, start_again, is_waiting, executed)

    def _dataframe(self, context: SessionContext, fragment: Fragment) -> Any:
        return fragments.plan(
            context, fragment.plan, self._inputs, fragment.inputs, fragment.tables
        )

    def _may_sort_apart(self, dataframe: Any) -> bool:
        """Return whether each partition of a plan, if there are several, may sort by itself."""
        return (
            self._contexts.has_several_partitions
            and sort_places.has_any(dataframe.logical_plan())
            and sort_places.may_be_apart(dataframe.optimized_logical_plan())
        )

    def _started_again(self, kept: KeptPlan, fragment: Fragment) -> Startable:
        """Return what starts a task that ran before.

        Raises:
            NoMemoryFileError: its inputs cannot be passed.
        """
        self._fill_whole(kept.facts, fragment.task)

        def again() -> object:
            frame = kept.dataframe
            if frame is None:
                context = self._contexts.serial if kept.is_product else self._contexts.main
                frame = self._dataframe(context, fragment)
            return self._start_shared_again(frame, kept.facts, fragment)

        return self._repeated.start_message(kept, fragment, again)

    def _without_splits(
        self, task: Task, fragment: bytes
    ) -> tuple[Task, bytes, Mapping[str, Table]]:
        """Make a fragment read the task's splits, and return the task without those shares.

        Raises:
            ExecutionError: the fragment does not read one of the tables.
        """
        tables = self._registered.snapshot.tables
        remote = [each for each in task.shares if is_external(tables.get(each.table))]
        if not remote:
            return task, fragment, {}
        narrowed = self._whole_files.narrowed(fragment, remote, tables)
        if narrowed is None:
            raise sharing.unread(remote[0].table)
        others = tuple(each for each in task.shares if each not in remote)
        return replace(task, shares=others), narrowed.fragment, narrowed.tables

    def _start_shared_again(self, dataframe: Any, facts: PlanFacts, fragment: Fragment) -> object:
        """Start a plan that reads shares of tables with less memory; see `frugal.start`."""
        serial = self._contexts.serial
        again = serial.create_dataframe_from_logical_plan(dataframe.logical_plan())
        shared = self._shared(serial, again, facts, fragment)
        return frugal.execute(self._contexts, shared.plan)

    def _fill_whole(self, facts: PlanFacts, task: Task) -> None:
        """Check that the tables that a fragment reads in full are in memory.

        Raises:
            ChunksAwayError: some rows are not in memory.
            ExecutionError: it reads a dataset with a log through a view.
        """
        read = self._registered.stored(facts)
        for table in self._versions.views(read, task.logs):
            raise ExecutionError(
                f"a fragment reads dataset '{table}' through a view, where its changes would be "
                "missing; this is a bug in the planner: please report it"
            )
        self._versions.fill(read)

    def _shared(
        self, context: SessionContext, dataframe: Any, facts: PlanFacts, fragment: Fragment
    ) -> RestrictedPlan:
        tables = self._registered.snapshot.tables
        specs = {name: spec for name in facts.scans if (spec := tables.get(name))}
        made = sharing.Sharing(fragment.task.shares, facts.scans, specs)
        try:
            plan = made.restrict(dataframe.execution_plan(), context, is_measured=True)
            if plan is None:
                unmeasured = self._contexts.unmeasured.get(context)
                if unmeasured is None:
                    unmeasured = self._contexts.unmeasured[self._contexts.main]
                dataframe = self._dataframe(unmeasured, fragment)
                plan = made.restrict(dataframe.execution_plan(), context, is_measured=False)
                assert plan is not None, "without statistics there is nothing to depend on"
        except NotDistributableError:
            raise
        except BaseException as exc:
            raise self._registered.translate(exc, planning=False) from exc
        return plan


def _given(plan: object) -> Any:
    return plan
