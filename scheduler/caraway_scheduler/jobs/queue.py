"""Orders the waiting jobs: in FIFO order for each principal, and fairly between principals."""

from collections import Counter, OrderedDict

from caraway_core.errors import OverloadedError
from caraway_core.ids import PUBLIC, JobId, PrincipalId

_RETRY_AFTER_S = 5


class FairQueue:
    """A bounded queue per principal; the principal with the fewest running jobs is next.

    One principal may fill half of the queue, so that it cannot lock out others. `PUBLIC` may fill
    all of it, because it is the only principal if no keys are configured.
    """

    def __init__(self, max_queued: int) -> None:
        self.max_queued = max_queued
        self._waiting: dict[PrincipalId, OrderedDict[JobId, None]] = {}
        self._principals: dict[JobId, PrincipalId] = {}
        self._running: Counter[PrincipalId] = Counter()
        # The turn in which each principal was last served, or joined. A joining principal ranks
        # last: otherwise one that always has a single waiting job would starve the others.
        self._turns: dict[PrincipalId, int] = {}
        self._last_turn = 0

    def __len__(self) -> int:
        return len(self._principals)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._principals

    @property
    def is_full(self) -> bool:
        """Return whether the queue has reached its limit."""
        return len(self) >= self.max_queued

    def waiting(self, principal: PrincipalId) -> int:
        """Return how many jobs of the principal wait."""
        return len(self._waiting.get(principal, ()))

    def check(self, principal: PrincipalId) -> None:
        """Check that another job of the principal may wait here.

        Raises:
            OverloadedError: the queue is full, or the principal's share of it is.
        """
        if self.is_full:
            raise OverloadedError(
                f"{len(self)} asynchronous queries wait, and the queue is full; try again "
                "later, or raise runtime.jobs.max_queued",
                _RETRY_AFTER_S,
            )
        if self.waiting(principal) >= self._most(principal):
            raise OverloadedError(
                f"{self.waiting(principal)} asynchronous queries of this key wait, which is the "
                "limit for one key; try again later, or raise runtime.jobs.max_queued",
                _RETRY_AFTER_S,
            )

    def add(self, principal: PrincipalId, job_id: JobId, *, always: bool = False) -> None:
        """Append a job to the jobs of its principal; a job that already waits keeps its position.

        With `always`, a full queue accepts it too: the job was accepted earlier or elsewhere.

        Raises:
            OverloadedError: the queue is full, or the principal's share of it is.
        """
        if job_id in self._principals:
            return
        if not always:
            self.check(principal)
        self._principals[job_id] = principal
        self._waiting.setdefault(principal, OrderedDict())[job_id] = None
        if principal not in self._turns:
            self._serve(principal)

    def next(self) -> JobId | None:
        """Remove and return the next job; call `started` when it runs."""
        if not self._waiting:
            return None
        principal = min(self._waiting, key=lambda each: (self._running[each], self._turns[each]))
        job_id = next(iter(self._waiting[principal]))
        self._serve(principal)
        self.remove(job_id)
        return job_id

    def remove(self, job_id: JobId) -> bool:
        """Remove a job; returns whether it waited here."""
        principal = self._principals.pop(job_id, None)
        if principal is None:
            return False
        del self._waiting[principal][job_id]
        if not self._waiting[principal]:
            del self._waiting[principal]
        self._forget(principal)
        return True

    def started(self, principal: PrincipalId) -> None:
        """Record that a job of the principal runs here."""
        self._running[principal] += 1

    def finished(self, principal: PrincipalId) -> None:
        """Record that a running job of the principal ended here."""
        if not self._running[principal]:
            raise ValueError(f"no job of '{principal}' runs here")
        self._running[principal] -= 1
        if not self._running[principal]:
            del self._running[principal]
        self._forget(principal)

    def _most(self, principal: PrincipalId) -> int:
        return self.max_queued if principal == PUBLIC else (self.max_queued + 1) // 2

    def _serve(self, principal: PrincipalId) -> None:
        self._last_turn += 1
        self._turns[principal] = self._last_turn

    def _forget(self, principal: PrincipalId) -> None:
        if principal not in self._waiting and principal not in self._running:
            self._turns.pop(principal, None)
