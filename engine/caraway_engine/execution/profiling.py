"""Reads the metrics of a plan that has run."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from caraway_core.protocols.profiles import OperatorProfile

_MOST_TEXT = 160


def operators(plan: object) -> tuple[OperatorProfile, ...]:
    """Return the metrics of each operator of an executed plan, from the last to the scans."""
    return tuple(_operators(plan, 0))


def _operators(plan: Any, depth: int) -> Iterator[OperatorProfile]:
    measured = plan.metrics()
    added: Counter[str] = Counter()
    for each in measured.metrics() if measured is not None else ():
        if isinstance(each.value, int):
            added[each.name] += each.value
    yield OperatorProfile(plan.display().strip()[:_MOST_TEXT], depth, dict(added))
    for child in plan.children():
        yield from _operators(child, depth + 1)
