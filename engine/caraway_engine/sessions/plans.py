"""Plans of statements and tasks, and the plan cache of a session."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.scans import presence
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.versions import Shown
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.statements import Effect

_CACHED_PLANS = 512


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StatementPlan:
    """A plan and what is known about it.

    `stored` are the accelerated datasets that it reads. `sql` is the text that was planned, which
    may differ from what the user wrote. `settings_off` are engine settings that would make its
    result wrong. `optimized` is the optimized plan if something needed it; optimizing is the most
    expensive step. A product that may not spill ends with an error instead.
    """

    dataframe: Any
    facts: PlanFacts
    effect: Effect
    is_product: bool
    files: presence.SingleFiles
    stored: frozenset[TableName]
    views: Shown = field(default_factory=dict)
    sql: str = ""
    settings_off: frozenset[str] = frozenset()
    optimized: Any = None
    may_spill: bool = True


@dataclass(frozen=True, slots=True)
class Startable:
    """A plan whose rows are in memory, and the callable that starts its stream.

    `start_again` starts a stream that uses less memory, if the plan may run a second time. If
    `is_waiting`, threads of the engine may block on a database or a model while the plan runs.
    `executed` returns the physical plan with its metrics, once the stream has ended. `holds` is
    kept as long as the stream.
    """

    plan: StatementPlan
    schema: pa.Schema
    start: Callable[[], Any]
    start_again: Callable[[], Any] | None = None
    is_waiting: bool = False
    executed: Callable[[], Any] | None = None
    holds: object = None


class KeptPlans:
    """Caches the most recently used plans, with their analyses and schemas."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, StatementPlan] = OrderedDict()
        self._analyses: WeakKeyDictionary[StatementPlan, Analysis] = WeakKeyDictionary()
        self._staged: WeakKeyDictionary[StatementPlan, Analysis] = WeakKeyDictionary()
        self._schemas: WeakKeyDictionary[StatementPlan, pa.Schema] = WeakKeyDictionary()
        self._lock = Lock()

    def recall(self, sql: str) -> StatementPlan | None:
        """Return the cached plan of a statement, or None."""
        with self._lock:
            plan = self._plans.get(sql)
            if plan:
                self._plans.move_to_end(sql)
            return plan

    def remember(self, sql: str, plan: StatementPlan) -> None:
        """Cache a plan, and evict the least recently used one if the cache is full."""
        with self._lock:
            self._plans[sql] = plan
            if len(self._plans) > _CACHED_PLANS:
                self._plans.popitem(last=False)

    def analysis(self, plan: StatementPlan) -> Analysis | None:
        """Return the cached analysis of a plan, or None."""
        with self._lock:
            return self._analyses.get(plan)

    def note_analysis(self, plan: StatementPlan, analysis: Analysis) -> None:
        """Cache the analysis of a plan for the lifetime of the plan."""
        with self._lock:
            self._analyses[plan] = analysis

    def staged(self, plan: StatementPlan) -> Analysis | None:
        """Return the cached analysis of a plan for its stages, or None."""
        with self._lock:
            return self._staged.get(plan)

    def note_staged(self, plan: StatementPlan, analysis: Analysis) -> None:
        """Cache the analysis of a plan for its stages for the lifetime of the plan."""
        with self._lock:
            self._staged[plan] = analysis

    def schema(self, plan: StatementPlan) -> pa.Schema | None:
        """Return the cached schema of a plan's result, or None."""
        with self._lock:
            return self._schemas.get(plan)

    def note_schema(self, plan: StatementPlan, schema: pa.Schema) -> None:
        """Cache the schema of a plan's result for the lifetime of the plan."""
        with self._lock:
            self._schemas[plan] = schema


def key_of(statement: Statement) -> str | None:
    """Return the cache key of a statement's plan, or None if the plan must not be cached.

    The runtime's own statements get their own keys. They can read tables that are hidden from a
    user's statement with the same text. Each key begins with whose it is, so that no text is the
    key of another kind. What a statement may write is no part of it: only plans that write nothing
    are cached.
    """
    if (
        statement.given
        or statement.parameters
        or statement.targets
        or statement.as_changes
        or statement.defines
        or statement.bound
        or statement.sources
        or statement.readable is not None
        or statement.found is not None
    ):
        return None
    return f"{'own' if statement.sources is None else 'user'}: {statement.sql}"
