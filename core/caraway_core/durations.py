"""Duration histograms as plain state, which the metrics of each component read when scraped."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

Labels = tuple[str, ...]
_BUCKETS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
_BOUNDS = [*(str(float(bound)) for bound in _BUCKETS_MS), "+Inf"]


class Durations:
    """A histogram of milliseconds for each combination of labels."""

    def __init__(self) -> None:
        # A named function: executors send this to the process that serves their metrics.
        self.buckets: dict[Labels, list[int]] = defaultdict(_empty)
        self.sums_ms: dict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, duration_ms: float) -> None:
        self.buckets[labels][bisect_left(_BUCKETS_MS, duration_ms)] += 1
        self.sums_ms[labels] += duration_ms

    def cumulative(self, labels: Labels) -> Sequence[tuple[str, int]]:
        """Return the cumulative count for each upper bound, as Prometheus expects it."""
        total, found = 0, []
        for bound, count in zip(_BOUNDS, self.buckets[labels], strict=True):
            total += count
            found.append((bound, total))
        return found


def _empty() -> list[int]:
    return [0] * len(_BOUNDS)
