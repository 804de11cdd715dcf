"""Whose job is next: those of one principal in their order, and principals in turn."""

from collections import Counter, OrderedDict

from caraway_core.errors import OverloadedError
from caraway_core.ids import PUBLIC, JobId, PrincipalId

_RETRY_AFTER_S = 5


class FairQueue:
    """A bounded queue for each principal; whoever has the fewest jobs running comes first.

    One principal may fill half of the queue, so that it cannot lock out others. `PUBLIC` may
    fill all of it: there are no others where no keys are configured.
    """

    def __init__(self, max_queued: int) -> None:
        self.max_queued = max_queued
        self._waiting: dict[PrincipalId, OrderedDict[JobId, None]] = {}
        self._principals: dict[JobId, PrincipalId] = {}
        self._running: Counter[PrincipalId] = Counter()
        # When each principal was served last, or came. One that comes anew ranks behind all
        # that wait: else one that always has a single job waiting would go before them for ever.
        self._turns: dict[PrincipalId, int] = {}
        self._last_turn = 0

    def __len__(self) -> int:
        return len(self._principals)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._principals

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_queued

    def waiting(self, principal: PrincipalId) -> int:
        """Return how many jobs of the principal wait."""
        return len(self._waiting.get(principal, ()))

    def check(self, principal: PrincipalId) -> None:
        """Find out whether another job of the principal may wait here.

        Raises:
            OverloadedError: the queue is full, or the principal's part of it is.
        """
        if self.is_full:
            raise OverloadedError(
                f"{len(self)} asynchronous queries wait, which is the most that may; try again "
                "later, or raise runtime.jobs.max_queued",
                _RETRY_AFTER_S,
            )
        if self.waiting(principal) >= self._most(principal):
            raise OverloadedError(
                f"{self.waiting(principal)} asynchronous queries of this key wait, which is the "
                "most that may of one key; try again later, or raise runtime.jobs.max_queued",
                _RETRY_AFTER_S,
            )

    def add(self, principal: PrincipalId, job_id: JobId, *, always: bool = False) -> None:
        """Put a job behind the others of its principal; one that waits already stays where it is.

        With `always` also a full queue takes it: the job was accepted earlier, or elsewhere.

        Raises:
            OverloadedError: the queue is full, or the principal's part of it is.
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
        """Take out the job whose turn it is; `started` must follow when it runs."""
        if not self._waiting:
            return None
        principal = min(self._waiting, key=lambda each: (self._running[each], self._turns[each]))
        job_id = next(iter(self._waiting[principal]))
        self._serve(principal)
        self.remove(job_id)
        return job_id

    def remove(self, job_id: JobId) -> bool:
        """Take a job out; returns whether it waited here."""
        principal = self._principals.pop(job_id, None)
        if principal is None:
            return False
        del self._waiting[principal][job_id]
        if not self._waiting[principal]:
            del self._waiting[principal]
        self._forget(principal)
        return True

    def started(self, principal: PrincipalId) -> None:
        """A job of the principal runs here now."""
        self._running[principal] += 1

    def finished(self, principal: PrincipalId) -> None:
        """One that ran here does not any more."""
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
