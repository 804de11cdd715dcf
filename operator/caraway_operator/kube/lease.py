"""Leader election with a Lease: only one operator is active at a time.

Only the clock of this process is used. A holder has failed if its Lease has not changed for the
duration of the Lease, so the clocks of machines need not agree.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import LEASE, Object

logger = logging.getLogger(__name__)


class LeaseLostError(CarawayError):
    """The Lease was lost, so another operator may be active."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The duration of the Lease, and the timing of its renewal."""

    duration_s: float = 15.0
    renew_s: float = 4.0
    answer_s: float = 4.0
    """The timeout of one attempt."""
    give_up_s: float = 10.0
    """Less than `duration_s`, so that the holder stops before another one starts."""


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A state of the Lease, and when it was first observed."""

    holder: str
    stamp: str
    since: float


def may_acquire(
    sighting: ObservedLease | None, identity: str, now: float, times: LeaseTimes
) -> bool:
    """Return whether nobody else holds the Lease, or its holder has failed."""
    if sighting is None or sighting.holder in ("", identity):
        return True
    return now - sighting.since >= times.duration_s


class LeaderElection:
    """Acquires and renews the Lease."""

    def __init__(
        self,
        kube: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        clock: SecondsClock,
        times: LeaseTimes = LeaseTimes(),
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._times = times
        self._seen: ObservedLease | None = None
        self._version = ""
        self._transitions = 0
        self._renewed = 0.0
        self.is_leader = False

    def health_problem(self) -> str:
        """Return why a leader is unhealthy: it could not renew the Lease. '' if it is healthy."""
        late_s = self._clock() - self._renewed
        if self.is_leader and late_s > 2 * self._times.duration_s:
            return f"the Lease was not renewed for {late_s:.0f} s"
        return ""

    @asynccontextmanager
    async def hold_lease(self) -> AsyncIterator[None]:
        """Wait for the Lease and hold it in the body, which is cancelled if the Lease is lost.

        Raises:
            LeaseLostError: the Lease was lost.
        """
        await self._acquire()
        try:
            async with asyncio.TaskGroup() as group:
                renewal = group.create_task(self._renew())
                yield
                renewal.cancel()
        except BaseExceptionGroup as found:
            lost, _ = found.split(LeaseLostError)
            raise (lost or found).exceptions[0] from None
        finally:
            await self._release()

    async def _acquire(self) -> None:
        while not await self.try_acquire():  # noqa: ASYNC110 -- the Lease is polled
            await asyncio.sleep(self._times.renew_s)
        logger.info("acquired the Lease", extra={"identity": self._identity})

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._times.renew_s)
            if await self.try_acquire():
                continue
            if not self.is_leader or self._clock() - self._renewed >= self._times.give_up_s:
                self.is_leader = False
                raise LeaseLostError(
                    f"the Lease {self._namespace}/{self._name} could not be renewed; this "
                    "operator exits, because another one may be active"
                )

    async def try_acquire(self) -> bool:
        """Try once to acquire or renew the Lease. Returns whether it is held now."""
        try:
            async with asyncio.timeout(self._times.answer_s):
                return await self._try_acquire()
        except TimeoutError:
            reason = f"the API server did not respond within {self._times.answer_s:g} s"
        except errors.KubeError as error:
            reason = error.message
        logger.warning("cannot renew the Lease", extra={"reason": reason})
        return False

    async def _try_acquire(self) -> bool:
        started = self._clock()
        try:
            self._observe(await self._kube.get(LEASE, self._namespace, self._name))
        except errors.ObjectNotFoundError:
            return self._acquired(started, await self._kube.create(self._lease()))
        if not may_acquire(self._seen, self._identity, self._clock(), self._times):
            self.is_leader = False
            return False
        try:
            merged = await self._kube.merge(
                LEASE, self._namespace, self._name, self._lease(self._version)
            )
        except errors.ConflictError:
            # Another operator was faster.
            return False
        return self._acquired(started, merged)

    def _observe(self, lease: Object) -> None:
        spec = lease.get("spec") or {}
        holder, stamp = spec.get("holderIdentity") or "", str(spec.get("renewTime"))
        self._version = lease["metadata"]["resourceVersion"]
        self._transitions = int(spec.get("leaseTransitions") or 0)
        if self._seen is None or (self._seen.holder, self._seen.stamp) != (holder, stamp):
            self._seen = ObservedLease(holder, stamp, self._clock())

    def _acquired(self, started: float, lease: Object) -> bool:
        self._observe(lease)
        self._renewed = started
        self.is_leader = True
        return True

    def _lease(self, version: str = "") -> Object:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        is_new = self._seen is None or self._seen.holder != self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._times.duration_s),
            "renewTime": now,
            "leaseTransitions": self._transitions + (1 if is_new and self._seen else 0),
        } | ({"acquireTime": now} if is_new else {})
        metadata = {"name": self._name, "namespace": self._namespace}
        if version:
            metadata["resourceVersion"] = version
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": metadata,
            "spec": spec,
        }

    async def _release(self) -> None:
        """Release the Lease, so that another operator can acquire it at once."""
        if not self.is_leader:
            return
        self.is_leader = False
        patch = {
            "metadata": {"resourceVersion": self._version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        }
        with suppress(errors.KubeError, TimeoutError):
            async with asyncio.timeout(2):
                await self._kube.merge(LEASE, self._namespace, self._name, patch)
