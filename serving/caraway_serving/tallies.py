"""Counters and durations as plain state, which the metrics page reads at scrape time."""

from collections import defaultdict

from caraway_core.process.durations import COARSE_MS, Durations, Labels


class ApiTallies:
    """The counters of the API and of the query service."""

    def __init__(self) -> None:
        self.query_executions: dict[Labels, int] = defaultdict(int)
        self.query_failures: dict[Labels, int] = defaultdict(int)
        self.query_returned_bytes: dict[Labels, int] = defaultdict(int)
        self.query_returned_rows: dict[Labels, int] = defaultdict(int)
        self.query_durations = Durations()
        self.query_first_rows = Durations()
        self.http_requests: dict[Labels, int] = defaultdict(int)
        self.http_durations = Durations(COARSE_MS)
        self.limited_requests: dict[Labels, int] = defaultdict(int)
        self.secrets_load_ms = 0.0
