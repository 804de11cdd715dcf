"""Keeps the plans of fragments over shares of files, as long as the files do not change."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa

from caraway_core.protocols.fleet import Share
from caraway_engine.scans import presence
from caraway_engine.scans.presence import FileStates
from caraway_engine.statements.plan_facts import PlanFacts

_MOST_PLANS = 128
_MOST_BYTES = 256 * 1024
"""A larger plan is not kept."""
Key = tuple[bytes, tuple[Share, ...]]
"""A fragment, and the shares that it reads."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptPlan:
    """A serialized physical plan that reads shares, and the plan of the fragment that it is from.

    It is made into a new plan for each task: a plan has the state of one run.
    """

    message: bytes
    dataframe: Any
    facts: PlanFacts
    schema: pa.Schema
    is_product: bool
    files: FileStates


class KeptSharePlans:
    """The plans that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, KeptPlan] = OrderedDict()
        self._lock = Lock()

    def find(self, key: Key) -> KeptPlan | None:
        """Return the plan of a fragment over these shares, if its files are what they were."""
        with self._lock:
            known = self._kept.get(key)
            if known is None:
                return None
            self._kept.move_to_end(key)
        if presence.states(_paths(known.files)) == known.files:
            return known
        with self._lock:
            self._kept.pop(key, None)
        return None

    def keep(self, key: Key, plan: KeptPlan) -> None:
        """Keep a plan; the one that was not used for longest goes."""
        if len(plan.message) + len(key[0]) > _MOST_BYTES:
            return
        with self._lock:
            self._kept[key] = plan
            if len(self._kept) > _MOST_PLANS:
                self._kept.popitem(last=False)


def _paths(files: FileStates) -> Sequence[str]:
    return [path for path, _, _ in files]
