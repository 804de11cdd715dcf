"""A work queue of clusters: each is reconciled by one worker at a time, soon after a change.

The controller knows clusters only by their keys.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from caraway_core.concurrency.backoff import Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_operator.watching.resource_cache import Key

logger = logging.getLogger(__name__)
_GATHER_S = 0.2
"""Changes come in bursts, such as the pods of a StatefulSet. They are reconciled together."""
_DELAYS = Delays(1.0, 120.0)

Reconcile = Callable[[Key], Awaitable[float | None]]
"""Reconciles a cluster and returns after how many seconds to do so again; None if it is gone.

After an error the cluster is reconciled again, with a delay that grows.
"""


class Controller:
    """Calls `reconcile` for the keys that are due, several at a time."""

    def __init__(self, reconcile: Reconcile, clock: SecondsClock, workers: int = 4) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._workers = workers
        self._due: dict[Key, float] = {}
        self._running: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()

    def enqueue(self, namespace: str, name: str, after_s: float = _GATHER_S) -> None:
        """Add a cluster to the queue. One that is due earlier keeps its time."""
        which = (namespace, name)
        due = self._clock() + after_s
        if due < self._due.get(which, float("inf")):
            self._due[which] = due
            self._wake.set()

    @property
    def queue_depth(self) -> int:
        """The number of clusters that are due and not being reconciled yet."""
        now = self._clock()
        return sum(due <= now for due in self._due.values())

    async def run_workers(self) -> None:
        """Reconcile clusters until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                now = self._clock()
                for which in sorted(self._due, key=lambda which: self._due[which]):
                    if len(self._running) >= self._workers or self._due[which] > now:
                        break
                    if which not in self._running:
                        del self._due[which]
                        self._running.add(which)
                        group.create_task(self._reconcile_one(which))
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        idle = [due for which, due in self._due.items() if which not in self._running]
        full = len(self._running) >= self._workers
        timeout_s = max(0.0, min(idle) - self._clock()) if idle and not full else None
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _reconcile_one(self, which: Key) -> None:
        try:
            after_s = await self._reconcile(which)
            self._failures.pop(which, None)
        except CarawayError as error:
            after_s = self._retry_s(which)
            self._log(which, error.message, after_s)
        except Exception:
            # The top of a task: a bug that one cluster triggers must not stop the others.
            after_s = self._retry_s(which)
            logger.exception("cannot reconcile the cluster", extra={"cluster": "/".join(which)})
        finally:
            self._running.discard(which)
            self._wake.set()
        if after_s is not None:
            self.enqueue(*which, after_s=after_s * random.uniform(0.9, 1.0))

    def _retry_s(self, which: Key) -> float:
        failures = self._failures[which] = self._failures.get(which, 0) + 1
        return _DELAYS.delay_s(failures)

    def _log(self, which: Key, reason: str, retry_s: float) -> None:
        logger.warning(
            "cannot reconcile the cluster",
            extra={"cluster": "/".join(which), "reason": reason, "retry_s": retry_s},
        )
