"""Measures how far a followed dataset is behind its source, as far as the source has delivered."""

from datetime import datetime, timedelta

from caraway_core.concurrency.clocks import DateClock

QUIET = timedelta(seconds=2)
"""A source that has sent nothing for this long has no more changes at present."""


class SourceProgress:
    """The time up to which the changes of a source are applied.

    Batches say when their last change was made. While the source sends nothing, and everything that
    it sent is applied, the dataset is up to date.
    """

    def __init__(self, clock: DateClock) -> None:
        self._clock = clock
        self._applied_to: datetime | None = None
        self._open = 0
        self._idle_since: datetime | None = None

    @property
    def behind_s(self) -> float | None:
        """The age of the source's state that the dataset has; None if it is not known yet."""
        now = self._clock()
        if self._is_quiet(now):
            return 0.0
        if self._applied_to is None:
            return None
        return max(0.0, (now - self._applied_to).total_seconds())

    def note_start(self) -> None:
        """Note that the source is read from now on, and has to send what it has."""
        self._open, self._idle_since = 0, None

    def receive(self) -> None:
        """Note that a batch has arrived."""
        now = self._clock()
        if self._is_quiet(now):
            self._applied_to = now
        self._open, self._idle_since = self._open + 1, None

    def apply(self, made_at: datetime | None, *, is_whole: bool) -> None:
        """Note that a batch is applied, whose last change was made at a time."""
        now = self._clock()
        self._open -= 1
        if not is_whole:
            return
        if made_at is not None:
            latest = min(made_at, now)
            self._applied_to = max(self._applied_to or latest, latest)
        if self._open == 0:
            self._idle_since = now

    def lose(self) -> None:
        """Note that the source cannot be read."""
        now = self._clock()
        if self._is_quiet(now):
            self._applied_to = now
        self._open, self._idle_since = 0, None

    def forget(self) -> None:
        """Note that another scheduler reads the source, and knows."""
        self._applied_to, self._open, self._idle_since = None, 0, None

    def _is_quiet(self, now: datetime) -> bool:
        return self._idle_since is not None and now - self._idle_since >= QUIET
