"""Remembers which plans have short results, and reads those in the thread that starts them.

Reading a batch from another thread takes longer than computing one row. A native thread that reads
cannot be cancelled, though. So only results are read that way that were short before, over the same
rows: how long a plan takes is then known.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa
from datafusion.record_batch import RecordBatchStream

from caraway_engine.execution.streams import OnWhole, RowsAhead
from caraway_engine.scans import presence
from caraway_engine.scans.presence import FileStates
from caraway_engine.sessions.plans import Startable, StatementPlan
from caraway_engine.statements.plan_facts import PlanFacts

MOST_BYTES = 64 * 1024
"""Results up to this size are short."""
_MOST_S = 0.01
_INSTANT_S = 0.002


class ShortResults:
    """The plans of a session whose last result was short."""

    def __init__(self, files_of: Callable[[PlanFacts], tuple[str, ...] | None]) -> None:
        """Take what names the files of a plan; None if its tables may change in other ways."""
        self._files_of = files_of
        self._known: WeakKeyDictionary[StatementPlan, FileStates] = WeakKeyDictionary()
        self._instant: WeakSet[StatementPlan] = WeakSet()
        self._lock = Lock()

    def is_instant(self, plan: StatementPlan) -> bool:
        """Return whether a plan without files was read at once, in less time than a thread takes.

        Never blocks: a look at files might.
        """
        with self._lock:
            return plan in self._instant

    def start_plan(self, made: Startable) -> tuple[object, RowsAhead | None]:
        """Start a plan; return its stream, and its rows if they were expected to be short."""
        plan = made.plan
        with self._lock:
            states = self._known.get(plan)
        if states is None:
            return made.start(), None
        if states != self._state(plan):
            self._forget(plan)
            return made.start(), None
        began_s = time.monotonic()
        stream = made.start()
        try:
            rows = _read(stream)
        except BaseException:  # noqa: BLE001 -- the caller may know a remedy
            # Its reader may know a remedy, such as to use less memory.
            self._forget(plan)
            return made.start(), None
        took_s = time.monotonic() - began_s
        if not rows.is_whole or took_s > 2 * _MOST_S:
            self._forget(plan)
        else:
            is_instant = not states and took_s < _INSTANT_S
            with self._lock:
                (self._instant.add if is_instant else self._instant.discard)(plan)
        return stream, rows

    def watch(self, made: Startable, stream: object) -> OnWhole | None:
        """Return what to call at the end of a stream; None if the next one may be different."""
        plan = made.plan
        is_read = plan.effect.written is None and not plan.is_product and not made.is_waiting
        if not is_read or not isinstance(stream, RecordBatchStream):
            return None
        with self._lock:
            if plan in self._known:
                return None
        state = self._state(plan)
        if state is None:
            return None

        def note(batches: int, size_bytes: int, took_s: float) -> None:
            if batches <= 1 and size_bytes <= MOST_BYTES and took_s <= _MOST_S:
                with self._lock:
                    self._known[plan] = state

        return note

    def _forget(self, plan: StatementPlan) -> None:
        with self._lock:
            self._known.pop(plan, None)
            self._instant.discard(plan)

    def _state(self, plan: StatementPlan) -> FileStates | None:
        paths = self._files_of(plan.facts)
        return None if paths is None else presence.states(paths)


def _read(stream: Any) -> RowsAhead:
    """Read a stream up to its end, or until its rows are no longer short."""
    batches: list[pa.RecordBatch] = []
    for batch in stream:
        batches.append(batch.to_pyarrow())
        if len(batches) > 1 or batches[0].nbytes > MOST_BYTES:
            return RowsAhead(tuple(batches), False)
    return RowsAhead(tuple(batches), True)
