"""Starts statements from their optimized plans, which are kept, with as many partitions as help.

Optimizing a plan takes about a millisecond for each statement, whose types need the optimized plan
in any case. Plans with functions of the time are optimized for each run, because the optimizer
computes these functions. Joins of plans that may run again are ordered by facts of their tables.
"""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.explained import ExplainedStatement
from caraway_engine.execution.contexts import Contexts, PlanRun
from caraway_engine.execution.streams import OnWhole
from caraway_engine.join_orders import DEFAULT, FactsOf, OrderPolicy, ordered
from caraway_engine.join_orders.joined_rows import JoinedRows, joined_rows
from caraway_engine.known_faults import names
from caraway_engine.sessions import early_filters, sort_places
from caraway_engine.sessions.plans import StatementPlan
from caraway_engine.statements import plan_nodes

_EXPLAINED = "explained"
_ANTI = frozenset({"LeftAnti", "RightAnti"})
WIDE = 1_000
"""The engine holds the interpreter while it optimizes a plan ahead: 0.5 s for 5,000 columns."""
_SHORT_S = 0.25
"""The time up to which a statement that has a core to itself runs in one partition in a crowd."""


class Reruns:
    """The optimized plans of a session's statements, and how long their runs took."""

    def __init__(self, contexts: Contexts, facts_of: FactsOf) -> None:
        self._contexts = contexts
        self._facts_of = facts_of
        self.policy: OrderPolicy = DEFAULT
        self.early_filters_pay: Callable[[object, FactsOf], bool] = early_filters.pay
        self._crowd = contexts.crowd
        self._optimized: WeakKeyDictionary[StatementPlan, object] = WeakKeyDictionary()
        self._ordered: WeakKeyDictionary[StatementPlan, object] = WeakKeyDictionary()
        self._running: WeakKeyDictionary[StatementPlan, PlanRun] = WeakKeyDictionary()
        self._short: WeakKeyDictionary[StatementPlan, bool] = WeakKeyDictionary()
        self._lock = Lock()

    def optimized(self, plan: StatementPlan) -> Any:
        """Return the optimized plan of a statement; optimize it if it was not before."""
        if plan.optimized is not None:
            return plan.optimized
        with self._lock:
            known = self._optimized.get(plan)
        if known is None:
            known = plan.dataframe.optimized_logical_plan()
            with self._lock:
                self._optimized[plan] = known
        return known

    def ordered(self, plan: StatementPlan) -> Any:
        """Return the optimized plan of a repeatable statement, with its joins in a good order.

        The rows that it reads have to be in memory.
        """
        optimized = self.optimized(plan)
        if not (plan.facts.has_join or plan.facts.has_subquery):
            return optimized
        with self._lock:
            known = self._ordered.get(plan)
        if known is None:
            known = None
            if not _may_be_null_aware(plan, optimized):
                known = ordered(optimized, self._facts_of, self.policy)
            if known is None or self._is_forbidden(known):
                known = optimized
            with self._lock:
                self._ordered[plan] = known
        return known

    def joined_rows(self, plan: StatementPlan) -> JoinedRows:
        """Return the estimated rows of the joins of a repeatable statement, by their tables."""
        if not (plan.facts.has_join or plan.facts.has_subquery):
            return {}
        return joined_rows(self.ordered(plan), self._facts_of)

    def running(self, plan: StatementPlan) -> PlanRun:
        """Return how a repeatable statement runs."""
        with self._lock:
            known = self._running.get(plan)
        if known is None:
            logical = self.ordered(plan)
            pays = not plan.stored and self.early_filters_pay(logical, self._facts_of)
            known = PlanRun(
                filters_early=pays,
                sorts_apart=sort_places.may_be_apart(logical),
                ends_early=sort_places.may_end_early(logical),
            )
            with self._lock:
                self._running[plan] = known
        return known

    def _is_forbidden(self, plan: object) -> bool:
        """Return whether the engine would make a plan physical with wrong filters."""
        try:
            return bool(names.forbidden(self._contexts.main, plan))
        except InvalidQueryError:
            return True

    def explained(self, behind: StatementPlan, asked: ExplainedStatement) -> Any:
        """Return what explains a statement whose plan is changed before it runs, or None."""
        if not is_repeatable(behind):
            return None
        plan, running = self.ordered(behind), self.running(behind)
        if plan is self.optimized(behind) and running == PlanRun():
            return None
        words = ["EXPLAIN", *["ANALYZE"] * asked.is_run, *["VERBOSE"] * asked.is_verbose]
        context = self._contexts.explaining(running)
        context.register_view(_EXPLAINED, context.create_dataframe_from_logical_plan(plan))
        return context.sql(f"{' '.join(words)} SELECT * FROM {_EXPLAINED}")

    def dataframe(self, plan: StatementPlan) -> Any:
        """Return what starts a statement: its optimized plan if every run may use the same one."""
        if not is_repeatable(plan) or is_wide_listing(plan):
            return plan.dataframe
        context = self._contexts.planned(self.running(plan))
        return context.create_dataframe_from_logical_plan(self.ordered(plan))

    def start(self, plan: StatementPlan) -> Any:
        """Start a statement, in one partition if it is short and others occupy the cores."""
        if self._crowd.is_dense and self._is_short(plan):
            try:
                return self._narrow(plan).execute_stream()
            except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
                # Some plans cannot be made for one partition, see docs/decisions/0006.
                pass
        return self.dataframe(plan).execute_stream()

    def _narrow(self, plan: StatementPlan) -> Any:
        """Return what starts a statement in one partition."""
        if not is_repeatable(plan):
            narrow = self._contexts.planned(PlanRun(), is_narrow=True)
            return narrow.create_dataframe_from_logical_plan(self.optimized(plan))
        context = self._contexts.planned(self.running(plan), is_narrow=True)
        return context.create_dataframe_from_logical_plan(self.ordered(plan))

    def watch(self, plan: StatementPlan, on_whole: OnWhole | None) -> OnWhole | None:
        """Return what to call at the end of a stream, which also calls `on_whole`."""
        if not is_repeatable(plan):
            return on_whole
        return partial(self._note, plan, on_whole)

    def _note(
        self,
        plan: StatementPlan,
        on_whole: OnWhole | None,
        batches: int,
        size_bytes: int,
        took_s: float,
    ) -> None:
        with self._lock:
            self._short[plan] = took_s * self._crowd.share <= _SHORT_S
        if on_whole is not None:
            on_whole(batches, size_bytes, took_s)

    def _is_short(self, plan: StatementPlan) -> bool:
        with self._lock:
            return self._short.get(plan, False)


def _may_be_null_aware(plan: StatementPlan, optimized: object) -> bool:
    """Return whether an anti join may be that of NOT IN, which a plan that is rebuilt loses.

    The engine shows an anti join of NOT IN as one of NOT EXISTS. Facts of a plan tell of its own
    NOT IN, but not of one in a view.
    """
    if plan.facts.uncut is None and not plan.views:
        return False
    return any(
        each.kind == "Join" and str(each.variant.join_type()) in _ANTI
        for each in plan_nodes.nodes(optimized)
    )


def is_repeatable(plan: StatementPlan) -> bool:
    """Return whether each run of a plan may begin with the same optimized plan."""
    return plan.effect.reads_only_catalog and not plan.is_product and not plan.settings_off


def is_wide_listing(plan: StatementPlan) -> bool:
    """Return whether a plan lists so many columns that it is optimized only where it starts.

    Nothing changes the types of columns that are only listed.
    """
    is_listing = plan.facts.names_columns_only and not plan.views
    return is_listing and len(plan.dataframe.schema()) > WIDE
