"""Starts statements from their optimized plans, which are kept, with as many partitions as help.

Optimizing a plan takes about a millisecond for each statement, whose types need the optimized plan
in any case. Plans with functions of the time are optimized for each run, because the optimizer
computes these functions.
"""

from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from caraway_engine.execution.contexts import Contexts
from caraway_engine.execution.streams import OnWhole
from caraway_engine.sessions.plans import StatementPlan

_WIDE = 1_000
"""The engine holds the interpreter while it optimizes a plan ahead: 0.5 s for 5,000 columns."""
_SHORT_S = 0.25
"""The time up to which a statement that has a core to itself runs in one partition in a crowd."""


class Reruns:
    """The optimized plans of a session's statements, and how long their runs took."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts
        self._crowd = contexts.crowd
        self._optimized: WeakKeyDictionary[StatementPlan, Any] = WeakKeyDictionary()
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

    def dataframe(self, plan: StatementPlan) -> Any:
        """Return what starts a statement: its optimized plan if every run may use the same one."""
        if not is_repeatable(plan) or is_wide_listing(plan):
            return plan.dataframe
        return self._contexts.planned.create_dataframe_from_logical_plan(self.optimized(plan))

    def start(self, plan: StatementPlan) -> Any:
        """Start a statement, in one partition if it is short and others occupy the cores."""
        if self._crowd.is_dense and self._is_short(plan):
            try:
                narrow = self._contexts.narrow
                return narrow.create_dataframe_from_logical_plan(
                    self.optimized(plan)
                ).execute_stream()
            except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
                # Some plans cannot be made for one partition, see docs/decisions/0006.
                pass
        return self.dataframe(plan).execute_stream()

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


def is_repeatable(plan: StatementPlan) -> bool:
    """Return whether each run of a plan may begin with the same optimized plan."""
    return plan.effect.reads_only_catalog and not plan.is_product and not plan.settings_off


def is_wide_listing(plan: StatementPlan) -> bool:
    """Return whether a plan lists so many columns that it is optimized only where it starts.

    Nothing changes the types of columns that are only listed.
    """
    is_listing = plan.facts.names_columns_only and not plan.views
    return is_listing and len(plan.dataframe.schema()) > _WIDE
