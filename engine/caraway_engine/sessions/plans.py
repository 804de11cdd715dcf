"""Plans of statements and tasks, and those of one session that are kept."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_engine.scans import presence
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.versions import Shown
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.statements import Effect

_CACHED_PLANS = 512


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StatementPlan:
    """A plan, with what is known of it: `stored` are the accelerated datasets that it reads.

    `sql` is the text that it was made of, which is not always what the user wrote. `settings_off`
    are those of the engine with which it would answer wrongly. `optimized` is the optimized plan,
    where something has asked for it: the optimizer takes more time than all else.
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


@dataclass(frozen=True, slots=True)
class Startable:
    """A plan whose rows are in memory, and how its stream is begun.

    `start_again` begins one that takes less memory, if the plan may run a second time. While it
    runs, threads of the engine may wait for a database, where `is_waiting`.
    """

    plan: StatementPlan
    schema: pa.Schema
    start: Callable[[], Any]
    start_again: Callable[[], Any] | None = None
    is_waiting: bool = False


class KeptPlans:
    """The plans of the statements that came last, and what was found out about plans."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, StatementPlan] = OrderedDict()
        self._analyses: WeakKeyDictionary[StatementPlan, Analysis] = WeakKeyDictionary()
        self._schemas: WeakKeyDictionary[StatementPlan, pa.Schema] = WeakKeyDictionary()
        self._lock = Lock()

    def recall(self, sql: str) -> StatementPlan | None:
        """Return the plan of a statement, if it was kept."""
        with self._lock:
            plan = self._plans.get(sql)
            if plan:
                self._plans.move_to_end(sql)
            return plan

    def remember(self, sql: str, plan: StatementPlan) -> None:
        """Keep a plan."""
        with self._lock:
            self._plans[sql] = plan
            if len(self._plans) > _CACHED_PLANS:
                self._plans.popitem(last=False)

    def analysis(self, plan: StatementPlan) -> Analysis | None:
        """Return what was noted of a plan."""
        with self._lock:
            return self._analyses.get(plan)

    def note_analysis(self, plan: StatementPlan, analysis: Analysis) -> None:
        """Keep what a plan asks of a cluster, for as long as the plan is there."""
        with self._lock:
            self._analyses[plan] = analysis

    def schema(self, plan: StatementPlan) -> pa.Schema | None:
        """Return the schema that was noted of a plan."""
        with self._lock:
            return self._schemas.get(plan)

    def note_schema(self, plan: StatementPlan, schema: pa.Schema) -> None:
        """Keep the schema of what a plan gives, for as long as the plan is there."""
        with self._lock:
            self._schemas[plan] = schema
