"""Detects processes that keep computing after their work was cancelled.

Some work of the engine, such as a product, does not check for cancellation. It may occupy its
process for minutes after anybody wants the result.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdleStart:
    """The start of an idle period: the time, and the processor time that was wanted until then."""

    since_s: float
    wanted_s: float

    def is_busy(self, now_s: float, wanted_s: float, after_s: float, cores: float) -> bool | None:
        """Return whether it wanted more than `cores` since then; None before `after_s` passed."""
        passed_s = now_s - self.since_s
        if passed_s < after_s:
            return None
        return (wanted_s - self.wanted_s) / passed_s > cores


class Idle:
    """Adds up the time in which a process has no work, and the processor time it wants then.

    The time of other work says nothing about cancelled work.
    """

    def __init__(self) -> None:
        self.passed_s = 0.0
        self._wanted_s = 0.0
        self._begun = -1
        """The works that had begun when it last had no work, or -1 if it had some."""
        self._last = IdleStart(0.0, 0.0)

    @property
    def cores(self) -> float:
        """The number of cores that it wanted in that time."""
        return self._wanted_s / self.passed_s if self.passed_s else 0.0

    def look(self, now_s: float, wanted_s: float, *, active: int, begun: int) -> None:
        """Record the state of a process: its running works, and all that have begun so far."""
        if not active and begun == self._begun:
            self.passed_s += now_s - self._last.since_s
            self._wanted_s += wanted_s - self._last.wanted_s
        self._begun = -1 if active else begun
        self._last = IdleStart(now_s, wanted_s)


class AfterStop:
    """Watches a process for work that continues after it was cancelled.

    The process reports its running work and its number of cancellations.
    """

    def __init__(self, after_s: float, cores: float) -> None:
        """Treat a process as busy if it wants more than `cores` for `after_s` seconds."""
        self._after_s = after_s
        self._cores = cores
        self._calm: IdleStart | None = None
        self._pid = 0
        self._stopped = 0
        """The number of cancellations when the process was last seen at rest."""

    def look(self, pid: int, now_s: float, wanted_s: float, *, active: int, stopped: int) -> bool:
        """Record the state of a process; return whether it keeps computing without any work."""
        if pid != self._pid:
            # A new process counts its cancellations from zero, and computes while it starts.
            self._pid, self._stopped, self._calm = pid, 0, None
        if active or stopped == self._stopped:
            # With other work running, nothing shows which work keeps it busy.
            self._calm = None
            return False
        if self._calm is None:
            self._calm = IdleStart(now_s, wanted_s)
            return False
        is_busy = self._calm.is_busy(now_s, wanted_s, self._after_s, self._cores)
        if is_busy is None:
            return False
        self._calm, self._stopped = None, stopped
        return is_busy
