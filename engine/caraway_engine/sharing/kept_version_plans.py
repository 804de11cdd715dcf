"""Keeps the optimized plans of fragments over versions of datasets, whose rows never change."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.concurrency.clocks import SecondsClock
from caraway_engine.execution.contexts import PlanRun
from caraway_engine.statements.plan_facts import PlanFacts

_MOST_PLANS = 128
_MOST_BYTES = 256 * 1024
"""The plan of a larger fragment is not kept."""
_UNUSED_S = 30.0
"""A plan keeps the rows that it reads in memory. Rows that were not read are let go after a minute;
see `StoredVersion.let_go`."""
_Key = tuple[bytes, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class KeptVersionPlan:
    """The optimized plan of a fragment, how it runs, and the plan that it is from."""

    optimized: Any
    running: PlanRun
    dataframe: Any
    facts: PlanFacts
    schema: pa.Schema


@dataclass(slots=True, eq=False)
class _Entry:
    plan: KeptVersionPlan
    tables: Mapping[str, Table]
    """Kept, so that no other table has the identity of one of them."""
    used_s: float


class KeptVersionPlans:
    """The plans that were used last, by fragment and by the tables that stand for its inputs."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[_Key, _Entry] = OrderedDict()
        self._lock = Lock()

    def find(self, fragment: bytes, tables: Mapping[str, Table]) -> KeptVersionPlan | None:
        """Return the plan of a fragment over exactly these tables, or None."""
        key = _key(fragment, tables)
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            entry.used_s = self._clock()
            return entry.plan

    def keep(self, fragment: bytes, tables: Mapping[str, Table], plan: KeptVersionPlan) -> None:
        """Keep a plan; the one that was not used for longest goes."""
        if len(fragment) > _MOST_BYTES:
            return
        with self._lock:
            self._kept[_key(fragment, tables)] = _Entry(plan, tables, self._clock())
            if len(self._kept) > _MOST_PLANS:
                self._kept.popitem(last=False)

    def forget_unused(self) -> None:
        """Forget plans that were not used for half a minute, and with them the rows they read."""
        before_s = self._clock() - _UNUSED_S
        with self._lock:
            while self._kept and next(iter(self._kept.values())).used_s < before_s:
                self._kept.popitem(last=False)


def _key(fragment: bytes, tables: Mapping[str, Table]) -> _Key:
    return fragment, tuple(sorted((name, id(table)) for name, table in tables.items()))
