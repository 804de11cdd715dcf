"""Counters of jobs, as plain state."""

from collections import defaultdict

from caraway_core.process.durations import Durations, Labels


class JobTallies:
    """Job counters of this process since its start."""

    def __init__(self) -> None:
        self.submitted = 0
        self.taken_over = 0
        self.finished: dict[Labels, int] = defaultdict(int)
        self.waits = Durations()
        self.durations = Durations()
        self.stored_rows = 0
        self.stored_bytes = 0
