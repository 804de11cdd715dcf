"""Counters of searches as plain state, which the metrics page reads at scrape time."""

from collections import defaultdict

from caraway_core.durations import Durations, Labels


class SearchTallies:
    """The counters of the search service."""

    def __init__(self) -> None:
        self.requests = 0
        self.failures: dict[Labels, int] = defaultdict(int)
        self.durations = Durations()

    def ended(self, duration_ms: float, error: Exception | None) -> None:
        """Count a search that ended."""
        self.requests += 1
        self.durations.add((), duration_ms)
        if error is not None:
            self.failures[(type(error).__name__,)] += 1
