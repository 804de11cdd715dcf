"""Which cluster is looked at when: one look at a time each, soon after a change.

It knows no cluster, only their keys, so that nothing is done twice and nothing is forgotten.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from caraway_core.backoff import Delays
from caraway_core.errors import CarawayError
from caraway_operator.known import Key

logger = logging.getLogger(__name__)
_GATHER_S = 0.2
"""Changes come in swarms: pods of a set, answers to what was written."""
_DELAYS = Delays(1.0, 120.0)

Look = Callable[[Key], Awaitable[float | None]]
"""Looks at a cluster; says after how long to look again, None if it is gone.

A CarawayError is tried again, ever later; so is anything else, which is a bug.
"""


class Controller:
    """Calls `look` for keys that are due, a few at once."""

    def __init__(self, look: Look, clock: Callable[[], float], workers: int = 4) -> None:
        self._look = look
        self._clock = clock
        self._workers = workers
        self._due: dict[Key, float] = {}
        self._running: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()

    def poke(self, namespace: str, name: str, after_s: float = _GATHER_S) -> None:
        """Have a cluster looked at; what is due sooner already stays so."""
        which = (namespace, name)
        due = self._clock() + after_s
        if due < self._due.get(which, float("inf")):
            self._due[which] = due
            self._wake.set()

    @property
    def waiting(self) -> int:
        """How many are due, and not looked at yet."""
        now = self._clock()
        return sum(due <= now for due in self._due.values())

    async def run(self) -> None:
        """Work until cancelled."""
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
                        group.create_task(self._work(which))
                await self._rest()

    async def _rest(self) -> None:
        idle = [due for which, due in self._due.items() if which not in self._running]
        full = len(self._running) >= self._workers
        timeout_s = max(0.0, min(idle) - self._clock()) if idle and not full else None
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _work(self, which: Key) -> None:
        try:
            again_s = await self._look(which)
            self._failures.pop(which, None)
        except CarawayError as error:
            again_s = self._later(which)
            self._log(which, error.message, again_s)
        except Exception:
            # The top of a piece of work: a bug met in one cluster must not stop the others.
            again_s = self._later(which)
            logger.exception("cluster not looked at", extra={"cluster": "/".join(which)})
        finally:
            self._running.discard(which)
            self._wake.set()
        if again_s is not None:
            self.poke(*which, after_s=again_s * random.uniform(0.9, 1.0))

    def _later(self, which: Key) -> float:
        failures = self._failures[which] = self._failures.get(which, 0) + 1
        return _DELAYS.delay_s(failures)

    def _log(self, which: Key, reason: str, again_s: float) -> None:
        logger.warning(
            "cluster not looked at",
            extra={"cluster": "/".join(which), "reason": reason, "again_s": again_s},
        )
