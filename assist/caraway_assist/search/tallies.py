"""Counters of searches and rerankers, which the metrics page reads at scrape time."""

from collections import defaultdict

from caraway_core.process.durations import Durations, Labels


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


class RerankerTallies:
    """The counters of the rerankers of the manifest. The label is the name of one."""

    def __init__(self) -> None:
        self.requests: dict[Labels, int] = defaultdict(int)
        self.failures: dict[Labels, int] = defaultdict(int)
        self.texts: dict[Labels, int] = defaultdict(int)
        self.durations = Durations()

    def ended(self, name: str, texts: int, duration_ms: float, error: Exception | None) -> None:
        """Count a call that ended."""
        self.requests[(name,)] += 1
        self.durations.add((name,), duration_ms)
        if error is None:
            self.texts[(name,)] += texts
        else:
            self.failures[(name, type(error).__name__)] += 1
