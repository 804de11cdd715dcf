"""Keeps the plans of tasks, and starts tasks that run again from them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from datafusion import ExecutionPlan, SessionContext
from datafusion.catalog import Table

from caraway_core.protocols.fleet import Task, TaskTable
from caraway_engine.execution import frugal
from caraway_engine.execution.contexts import PlanRun
from caraway_engine.rows import plain
from caraway_engine.scans import presence
from caraway_engine.scans.presence import FileStates
from caraway_engine.sessions import sort_places
from caraway_engine.sessions.plans import Startable, StatementPlan
from caraway_engine.sessions.registered import Registered
from caraway_engine.sessions.reruns import WIDE
from caraway_engine.sessions.versions import Views
from caraway_engine.sharing import kept_plans, memory_files
from caraway_engine.sharing.kept_plans import KeptPlan, KeptSharePlans
from caraway_engine.sharing.kept_version_plans import KeptVersionPlan, KeptVersionPlans
from caraway_engine.sharing.memory_files import NoMemoryFileError, PlanWithoutRows
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.statements import Effect

_MOST_INPUT_BYTES = 1024 * 1024
"""Rows of inputs that are copied, so that a task without shares is not planned again."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment that is to run: its task, its plan, its inputs and its tables."""

    task: Task
    plan: bytes
    inputs: Sequence[TaskTable]
    tables: Mapping[str, Table]
    """The tables that stand for shares, and for datasets with changes."""
    views: Views
    is_waiting: bool
    """True if it reads a database."""

    @property
    def reads_only_tables(self) -> bool:
        """True if it has no inputs, and reads rows that never change."""
        is_changing = self.task.shares or self.task.found or self.views or self.is_waiting
        return not (self.inputs or is_changing)


class RepeatedTasks:
    """The plans of tasks of one session: optimized ones, and physical ones as messages."""

    def __init__(self, registered: Registered) -> None:
        self._registered = registered
        self._contexts = registered.contexts
        self._kept = KeptSharePlans()
        self._over_versions = KeptVersionPlans()

    def forget_unused(self) -> None:
        """Forget plans that were not used lately, with the rows that they keep in memory."""
        self._over_versions.forget_unused()

    def find(self, fragment: Fragment) -> KeptVersionPlan | None:
        """Return the plan of a fragment that reads only versions of datasets, if it is kept."""
        if not fragment.reads_only_tables:
            return None
        return self._over_versions.find(fragment.plan, fragment.tables)

    def keep(self, fragment: Fragment, dataframe: Any, facts: PlanFacts) -> KeptVersionPlan | None:
        """Keep the plan of a fragment; return None if it reads other than versions."""
        if not fragment.reads_only_tables or not facts.reads_only_catalog:
            return None
        versions = self._registered.versions
        if not all(name in versions or self._is_input(name) for name in facts.scans):
            return None
        schema = pa.schema(dataframe.schema())
        if len(schema) > WIDE:
            return None
        optimized = dataframe.optimized_logical_plan()
        is_apart = self._contexts.has_several_partitions and sort_places.may_be_apart(optimized)
        running = PlanRun(sorts_apart=is_apart)
        kept = KeptVersionPlan(optimized, running, dataframe, facts, schema)
        self._over_versions.keep(fragment.plan, fragment.tables, kept)
        return kept

    def start(self, kept: KeptVersionPlan, task: Task) -> Startable:
        """Return what starts a task from its optimized plan; the rows have to be in memory."""
        plain.check_same(kept.schema, task.schema)
        context = self._contexts.planned(kept.running)
        # Of its own, because the physical plan that a dataframe has is that of its last run.
        dataframe = context.create_dataframe_from_logical_plan(kept.optimized)
        return Startable(
            self._plan(dataframe, kept.facts, {}, is_product=False),
            kept.schema,
            dataframe.execute_stream,
            partial(frugal.start, self._contexts, kept.dataframe),
            executed=dataframe.execution_plan,
        )

    def key_of(self, fragment: Fragment) -> kept_plans.Key | None:
        """Return the key of a plan that reads files or inputs; None if it may not be kept."""
        task, inputs = fragment.task, fragment.inputs
        if fragment.tables or task.found or not (task.shares or inputs):
            return None
        if not task.shares and _size_bytes(inputs) > _MOST_INPUT_BYTES:
            return None
        return kept_plans.key_of(fragment.plan, task.shares, inputs)

    def find_message(self, key: kept_plans.Key) -> KeptPlan | None:
        """Return the message of a plan, if the files that it reads have not changed."""
        return self._kept.find(key)

    def files(
        self, key: kept_plans.Key | None, fragment: Fragment, facts: PlanFacts
    ) -> tuple[tuple[str, ...], FileStates] | None:
        """Return the places that a plan reads, and the files there; None if it is not kept now."""
        scans = {name: count for name, count in facts.scans.items() if not self._is_input(name)}
        if key is None or facts.is_volatile or bool(scans) != bool(fragment.task.shares):
            return None
        places = self._registered.local_places(replace(facts, scans=scans))
        if places is None or bool(places) != bool(scans):
            return None  # Without a file to look at, a change of its shares is not noticed.
        states = presence.states(places)
        if states is None or (fragment.inputs and not self._kept.is_due(key)):
            return None
        return places, states

    def keep_message(
        self, key: kept_plans.Key, fragment: Fragment, plan: ExecutionPlan, kept: KeptPlan
    ) -> KeptPlan | None:
        """Keep the message of a plan, without the rows of its inputs; None if it needs them.

        `kept` has the message with the rows.
        """
        if fragment.inputs:
            without = self._without_rows(plan, kept, fragment.inputs)
            if without is None:
                return None
            kept = replace(kept, plan=without)
        self._kept.keep(key, kept)
        return kept

    def start_message(
        self, kept: KeptPlan, fragment: Fragment, start_again: Callable[[], object]
    ) -> Startable:
        """Return what starts a task from the message of its plan.

        Raises:
            NoMemoryFileError: its inputs cannot be passed.
        """
        plain.check_same(kept.schema, fragment.task.schema)
        context = self._context(is_product=kept.is_product)
        message, files = kept.plan.filled(fragment.inputs)
        shared = ExecutionPlan.from_bytes(context, message)
        return Startable(
            self._plan(kept.dataframe, kept.facts, fragment.views, is_product=kept.is_product),
            kept.schema,
            partial(context.execute, shared, 0),
            None if kept.is_product else start_again,
            executed=lambda: shared,
            holds=files,
        )

    def _without_rows(
        self, plan: ExecutionPlan, kept: KeptPlan, inputs: Sequence[TaskTable]
    ) -> PlanWithoutRows | None:
        """Return the message of a plan without the rows of its inputs, or None."""
        with suppress(NoMemoryFileError, ValueError):
            bare = memory_files.without_rows(plan, kept.plan.message, inputs)
            if bare is None:
                return None
            message, _files = bare.filled(inputs)
            filled = ExecutionPlan.from_bytes(self._context(is_product=kept.is_product), message)
            if memory_files.is_same(plan, filled):
                return bare
        return None

    def _context(self, *, is_product: bool) -> SessionContext:
        return self._contexts.serial if is_product else self._contexts.main

    def _is_input(self, name: str) -> bool:
        """Return whether a name is that of an input, or of what stands for a share."""
        return name.startswith(f"{INPUT_SCHEMA}.") and name not in self._registered.snapshot.tables

    def _plan(
        self, dataframe: object, facts: PlanFacts, views: Views, *, is_product: bool
    ) -> StatementPlan:
        effect = Effect(written=None, reads_only_catalog=False)
        present = self._registered.files(facts)
        return StatementPlan(
            dataframe, facts, effect, is_product, present, frozenset(), views=views
        )


def _size_bytes(inputs: Sequence[TaskTable]) -> int:
    return sum(table.nbytes for each in inputs for table in each.tables)
