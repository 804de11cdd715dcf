"""Keeps the plans of fragments over shares of files, as long as the files do not change."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa

from caraway_core.protocols.fleet import Share, TaskTable
from caraway_engine.scans import presence
from caraway_engine.scans.presence import FileStates
from caraway_engine.sharing.memory_files import PlanWithoutRows
from caraway_engine.statements.plan_facts import PlanFacts

_MOST_PLANS = 128
_MOST_BYTES = 256 * 1024
"""A larger plan is not kept."""
_MOST_SEEN = 512
_SIGHTS = 1
"""The runs of a fragment with inputs before its plan is kept, which takes time."""
InputStatistics = tuple[str, int, tuple[tuple[int, int], ...]]
"""An input, its rows, and the bytes and NULLs of each column: all that a plan may depend on."""
Key = tuple[bytes, tuple[Share, ...], tuple[InputStatistics, ...]]
"""A fragment, the shares that it reads, and its inputs."""


def key_of(fragment: bytes, shares: tuple[Share, ...], inputs: Sequence[TaskTable]) -> Key:
    """Return the key of a plan."""
    return fragment, shares, tuple(map(_statistics, inputs))


def _statistics(rows: TaskTable) -> InputStatistics:
    columns = [
        (
            sum(table.column(index).nbytes for table in rows.tables),
            sum(table.column(index).null_count for table in rows.tables),
        )
        for index in range(len(rows.schema))
    ]
    return rows.name, sum(table.num_rows for table in rows.tables), tuple(columns)


@dataclass(frozen=True, slots=True, eq=False)
class KeptPlan:
    """A serialized physical plan that reads shares, and the plan of the fragment that it is from.

    It is made into a new plan for each task: a plan has the state of one run. `dataframe` is None
    if there are inputs, as it has their rows.
    """

    plan: PlanWithoutRows
    dataframe: Any
    facts: PlanFacts
    schema: pa.Schema
    is_product: bool
    places: tuple[str, ...]
    files: FileStates
    """The files that were in these places, or were one, before it was planned."""


class KeptSharePlans:
    """The plans that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, KeptPlan] = OrderedDict()
        self._seen: OrderedDict[int, int] = OrderedDict()
        self._lock = Lock()

    def is_due(self, key: Key) -> bool:
        """Note a run of a fragment with inputs; return whether its plan should be kept now."""
        with self._lock:
            times = self._seen.pop(hash(key), 0)
            self._seen[hash(key)] = times + 1
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
        return times >= _SIGHTS

    def find(self, key: Key) -> KeptPlan | None:
        """Return the plan of a fragment over these shares, if its files have not changed."""
        with self._lock:
            plan = self._kept.get(key)
            if plan is None:
                return None
            self._kept.move_to_end(key)
        if presence.states(plan.places) == plan.files:
            return plan
        with self._lock:
            self._kept.pop(key, None)
        return None

    def keep(self, key: Key, plan: KeptPlan) -> None:
        """Keep a plan; the one that was not used for longest goes."""
        if len(plan.plan.message) + len(key[0]) > _MOST_BYTES:
            return
        with self._lock:
            self._kept[key] = plan
            if len(self._kept) > _MOST_PLANS:
                self._kept.popitem(last=False)
