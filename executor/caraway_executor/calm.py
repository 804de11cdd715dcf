"""Tells whether a process rests once its work was stopped.

Some work of the engine, such as a join of all rows with all rows, does not look whether it was
stopped. Its process is busy with it, for minutes, while nobody waits for the result.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calm:
    """A process at a moment when it had nothing to do: the processor time that it had wanted."""

    since_s: float
    wanted_s: float

    def is_busy(self, now_s: float, wanted_s: float, after_s: float, cores: float) -> bool | None:
        """Tell if it has wanted more than so many cores; None before `after_s` has passed."""
        passed_s = now_s - self.since_s
        if passed_s < after_s:
            return None
        return (wanted_s - self.wanted_s) / passed_s > cores


class AfterStop:
    """Follows a process that says how much work it has, and how often work was stopped in it."""

    def __init__(self, after_s: float, cores: float) -> None:
        """Take one for busy that wants more than so many cores for `after_s`."""
        self._after_s = after_s
        self._cores = cores
        self._calm: Calm | None = None
        self._pid = 0
        self._stopped = 0
        """The number of stops up to the last time when the process was seen to rest."""

    def look(self, pid: int, now_s: float, wanted_s: float, *, active: int, stopped: int) -> bool:
        """Note how a process is; returns whether it works on though it has nothing to do."""
        if pid != self._pid:
            # It counts its stops from the beginning, and has work of its own as it starts.
            self._pid, self._stopped, self._calm = pid, 0, None
        if active or stopped == self._stopped:
            # Of one that has other work nothing tells what it is busy with.
            self._calm = None
            return False
        if self._calm is None:
            self._calm = Calm(now_s, wanted_s)
            return False
        is_busy = self._calm.is_busy(now_s, wanted_s, self._after_s, self._cores)
        if is_busy is None:
            return False
        self._calm, self._stopped = None, stopped
        return is_busy
