"""Plans the fragments that tasks run over their shares of tables."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from datafusion import ExecutionPlan, SessionContext
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
from caraway_engine.sessions.spec_facts import is_external
from caraway_engine.sessions.versions import NarrowedTask
from caraway_engine.sharing import kept_plans, memory_files, shares, sharing, whole_files
from caraway_engine.sharing.kept_plans import KeptPlan, KeptSharePlans
from caraway_engine.sharing.memory_files import NoMemoryFileError, PlanWithoutRows
from caraway_engine.sharing.sharing import RestrictedPlan
from caraway_engine.stages import fragments
from caraway_engine.stages.inputs import INPUT_SCHEMA
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
        self._kept = KeptSharePlans()
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
        assert isinstance(task.work, SubstraitFragment), "the engine plans only fragments"
        context = self._contexts.main
        narrowed_task = self._versions.narrowed(task, task.work)
        task, given, held = narrowed_task.task, narrowed_task.fragment, dict(narrowed_task.tables)
        tables = self._registered.snapshot.tables
        task, given, remote = self._without_splits(task, given)
        held = {**held, **remote}
        narrowed = self._whole_files.narrowed(given, task.shares, tables)
        fragment, files = (narrowed.fragment, narrowed.tables) if narrowed else (given, {})
        made = {**held, **files}
        may_be_kept = bool(task.shares) and not (narrowed or made or task.found)
        key = kept_plans.key_of(fragment, task.shares, inputs) if may_be_kept else None
        if key is not None and (kept_plan := self._kept.find(key)) is not None:
            with suppress(NoMemoryFileError):
                return self._started_again(kept_plan, task, fragment, inputs, narrowed_task)
        dataframe = fragments.plan(context, fragment, self._inputs, inputs, made)
        facts = plan_facts.of(dataframe.logical_plan())
        self._fill_whole(facts, task)
        joins = self._registered.joins(dataframe, facts)
        is_product = joins.has_product
        is_calling = not facts.functions.isdisjoint(embedding.CALLING)
        if is_product:
            # The fragment is planned over tables, which only this context has.
            context = self._contexts.serial
            dataframe = fragments.plan(context, fragment, self._inputs, inputs, made)
            if not joins.may_spill:
                key = None  # A kept plan runs in the other context.
                context = self._contexts.unspilled
                dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        elif is_calling:
            context = self._contexts.calling
            dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        elif self._may_sort_apart(dataframe):
            context = self._contexts.sorting
            dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        schema = pa.schema(dataframe.schema())
        plain.check_same(schema, task.schema)
        start = partial(natively.start, dataframe, self._registered.scratch)
        again = partial(frugal.start, self._contexts, dataframe)
        executed = dataframe.execution_plan  # It is the one that ran, if one did.
        if narrowed:
            whole_files.check_present(task.shares, made, context)
        elif task.shares:
            places = self._places(facts) if key is not None and not is_calling else None
            states = presence.states(places) if places else None
            shared = self._shared(context, dataframe, facts, task, fragment, inputs, held)
            if key is not None and places and states is not None:
                bare = self._without_rows(key, shared, inputs, is_product)
                if bare is not None:
                    of = None if inputs else dataframe
                    kept = KeptPlan(bare, of, facts, schema, is_product, places, states)
                    self._kept.keep(key, kept)
                    if inputs:
                        with suppress(NoMemoryFileError):
                            return self._started_again(kept, task, fragment, inputs, narrowed_task)
            start = partial(context.execute, shared.plan, 0)
            executed = partial(_given, shared.plan)
            again = partial(
                self._start_shared_again, dataframe, facts, task, fragment, inputs, held
            )
        if is_waiting := bool(remote) or is_calling:
            from caraway_engine.remote import streams  # Slow to import; few tasks need it.

            start = partial(streams.LateStream, start)
        effect = Effect(written=None, reads_only_catalog=False)
        present = self._registered.files(facts)
        plan = StatementPlan(
            dataframe, facts, effect, is_product, present, frozenset(), views=narrowed_task.views
        )
        start_again = None if is_product else again
        return Startable(plan, schema, start, start_again, is_waiting, executed)

    def _may_sort_apart(self, dataframe: Any) -> bool:
        """Return whether each partition of a plan, if there are several, may sort by itself."""
        return (
            self._contexts.has_several_partitions
            and sort_places.has_any(dataframe.logical_plan())
            and sort_places.may_be_apart(dataframe.optimized_logical_plan())
        )

    def _started_again(
        self,
        kept_plan: KeptPlan,
        task: Task,
        fragment: bytes,
        inputs: Sequence[TaskTable],
        narrowed_task: NarrowedTask,
    ) -> Startable:
        """Make the plan of a task that ran before from what is known of it.

        Raises:
            NoMemoryFileError: its inputs cannot be passed.
        """
        self._fill_whole(kept_plan.facts, task)
        plain.check_same(kept_plan.schema, task.schema)
        context = self._contexts.serial if kept_plan.is_product else self._contexts.main
        message, files = kept_plan.plan.filled(inputs)
        shared = ExecutionPlan.from_bytes(context, message)
        effect = Effect(written=None, reads_only_catalog=False)
        present = self._registered.files(kept_plan.facts)
        plan = StatementPlan(
            kept_plan.dataframe, kept_plan.facts, effect, kept_plan.is_product, present,
            frozenset(),
            views=narrowed_task.views,
        )  # fmt: skip

        def again() -> object:
            frame = kept_plan.dataframe or fragments.plan(context, fragment, self._inputs, inputs)
            return self._start_shared_again(frame, kept_plan.facts, task, fragment, inputs, {})

        return Startable(
            plan,
            kept_plan.schema,
            partial(context.execute, shared, 0),
            None if kept_plan.is_product else again,
            executed=partial(_given, shared),
            holds=files,
        )

    def _without_rows(
        self,
        key: kept_plans.Key,
        shared: RestrictedPlan,
        inputs: Sequence[TaskTable],
        is_product: bool,
    ) -> PlanWithoutRows | None:
        """Return the plan of a task without the rows of its inputs; None if it is not kept."""
        if not inputs:
            return PlanWithoutRows(shared.message, ())
        if not self._kept.is_due(key):
            return None
        context = self._contexts.serial if is_product else self._contexts.main
        with suppress(NoMemoryFileError, ValueError):
            bare = memory_files.without_rows(shared.plan, shared.message, inputs)
            if bare is None:
                return None
            message, _files = bare.filled(inputs)
            if memory_files.is_same(shared.plan, ExecutionPlan.from_bytes(context, message)):
                return bare
        return None

    def _places(self, facts: PlanFacts) -> tuple[str, ...] | None:
        """Return the files and folders that a plan reads; None if it may not be kept."""
        if facts.is_volatile:
            return None
        tables = self._registered.snapshot.tables
        scans = {
            name: count
            for name, count in facts.scans.items()
            if name in tables or not name.startswith(f"{INPUT_SCHEMA}.")
        }
        return self._registered.local_places(replace(facts, scans=scans))

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

    def _start_shared_again(
        self,
        dataframe: Any,
        facts: PlanFacts,
        task: Task,
        fragment: bytes,
        inputs: Sequence[TaskTable],
        held: Mapping[str, Table],
    ) -> Any:
        """Start a plan that reads shares of tables with less memory; see `frugal.start`."""
        serial = self._contexts.serial
        again = serial.create_dataframe_from_logical_plan(dataframe.logical_plan())
        shared = self._shared(serial, again, facts, task, fragment, inputs, held)
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
        self,
        context: SessionContext,
        dataframe: Any,
        facts: PlanFacts,
        task: Task,
        fragment: bytes,
        inputs: Sequence[TaskTable],
        held: Mapping[str, Table],
    ) -> RestrictedPlan:
        tables = self._registered.snapshot.tables
        specs = {name: spec for name in facts.scans if (spec := tables.get(name))}
        made = sharing.Sharing(task.shares, facts.scans, specs)
        try:
            plan = made.restrict(dataframe.execution_plan(), context, is_measured=True)
            if plan is None:
                unmeasured = self._contexts.unmeasured.get(context)
                if unmeasured is None:
                    unmeasured = self._contexts.unmeasured[self._contexts.main]
                dataframe = fragments.plan(unmeasured, fragment, self._inputs, inputs, held)
                plan = made.restrict(dataframe.execution_plan(), context, is_measured=False)
                assert plan is not None, "without statistics there is nothing to depend on"
        except NotDistributableError:
            raise
        except BaseException as exc:
            raise self._registered.translate(exc, planning=False) from exc
        return plan


def _given(plan: Any) -> Any:
    return plan
