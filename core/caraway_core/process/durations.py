"""Duration histograms as plain state, which the metrics of each component read when scraped."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

Labels = tuple[str, ...]
_BUCKETS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
COARSE_MS = (5, 25, 100, 500, 2_500, 10_000, 60_000)
"""Bounds for histograms with many combinations of labels, each of which has all buckets."""


class Durations:
    """A histogram of milliseconds for each combination of labels."""

    def __init__(self, bounds_ms: Sequence[float] = _BUCKETS_MS) -> None:
        self._bounds_ms = bounds_ms
        # No lambda: executors send this to the process that serves their metrics.
        self.buckets: dict[Labels, list[int]] = defaultdict(partial(_empty, len(bounds_ms) + 1))
        self.sums_ms: dict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, duration_ms: float) -> None:
        self.buckets[labels][bisect_left(self._bounds_ms, duration_ms)] += 1
        self.sums_ms[labels] += duration_ms

    def cumulative(self, labels: Labels) -> Sequence[tuple[str, int]]:
        """Return the cumulative count for each upper bound, as Prometheus expects it."""
        total, found = 0, []
        bounds = [*(str(float(bound)) for bound in self._bounds_ms), "+Inf"]
        for bound, count in zip(bounds, self.buckets[labels], strict=True):
            total += count
            found.append((bound, total))
        return found


def _empty(count: int) -> list[int]:
    return [0] * count
