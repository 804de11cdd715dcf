"""Counts and durations as plain state; the metrics page reads them when it is scraped."""

from bisect import bisect_left
from collections import defaultdict

Labels = tuple[str, ...]
_BUCKETS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)


class Durations:
    """A histogram of milliseconds for each combination of labels."""

    bounds_ms = _BUCKETS_MS

    def __init__(self) -> None:
        self.buckets: dict[Labels, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS_MS) + 1))
        self.sums_ms: dict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, duration_ms: float) -> None:
        self.buckets[labels][bisect_left(_BUCKETS_MS, duration_ms)] += 1
        self.sums_ms[labels] += duration_ms


class Tallies:
    """Everything that the API and the query service count."""

    def __init__(self) -> None:
        self.query_executions: dict[Labels, int] = defaultdict(int)
        self.query_failures: dict[Labels, int] = defaultdict(int)
        self.query_returned_bytes: dict[Labels, int] = defaultdict(int)
        self.query_returned_rows: dict[Labels, int] = defaultdict(int)
        self.query_durations = Durations()
        self.http_requests: dict[Labels, int] = defaultdict(int)
        self.http_durations = Durations()
        self.secrets_load_ms = 0.0
