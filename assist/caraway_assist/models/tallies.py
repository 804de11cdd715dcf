"""Counters of model calls as plain state, which the metrics page reads at scrape time."""

from collections import defaultdict

from caraway_core.process.durations import Durations, Labels


class ModelTallies:
    """The counters of all models; each label is the model's name, and a code for failures."""

    def __init__(self) -> None:
        self.requests: dict[Labels, int] = defaultdict(int)
        self.failures: dict[Labels, int] = defaultdict(int)
        self.prompt_tokens: dict[Labels, int] = defaultdict(int)
        self.completion_tokens: dict[Labels, int] = defaultdict(int)
        self.worker_requests: dict[Labels, int] = defaultdict(int)
        """By worker and model."""
        self.worker_failovers: dict[Labels, int] = defaultdict(int)
        """By worker and the model that failed."""
        self.durations = Durations()
        self.first_tokens = Durations()
