"""One operator acts at a time: who holds the Lease, and when another may take it.

Times are read from this process's clock only: a holder is gone when its Lease has not changed for
as long as it lasts, whatever the clocks of the two machines say.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from caraway_core.errors import CarawayError
from caraway_operator.kube import errors
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import LEASE, Object

logger = logging.getLogger(__name__)


class LeaseLostError(CarawayError):
    """Another operator may have taken over; this one must not write any more."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long a Lease lasts, how often it is renewed, and when its holder gives up."""

    duration_s: float = 15.0
    renew_s: float = 4.0
    answer_s: float = 4.0
    """How long one attempt may take."""
    give_up_s: float = 10.0
    """Less than `duration_s`: the holder has stopped before another begins."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The Lease as it was when it was first seen so."""

    holder: str
    stamp: str
    since: float


def may_take(sighting: Sighting | None, me: str, now: float, times: Times) -> bool:
    """Tell whether the Lease is free: held by nobody, by me, or by somebody who is gone."""
    if sighting is None or sighting.holder in ("", me):
        return True
    return now - sighting.since >= times.duration_s


class Election:
    """Takes the Lease, and keeps it."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        me: str,
        clock: Callable[[], float],
        times: Times = Times(),
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._me = me
        self._clock = clock
        self._times = times
        self._seen: Sighting | None = None
        self._version = ""
        self._transitions = 0
        self._renewed = 0.0
        self.is_leader = False

    def ailment(self) -> str:
        """Say why this process should be ended: it acts, and cannot hold the Lease. Or ''."""
        late_s = self._clock() - self._renewed
        if self.is_leader and late_s > 2 * self._times.duration_s:
            return f"the Lease was not renewed for {late_s:.0f} s"
        return ""

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for the Lease, and hold it for the body; the body is cancelled if it is lost.

        Raises:
            LeaseLostError: it was lost.
        """
        await self._take()
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(self._keep())
                yield
                keeper.cancel()
        except BaseExceptionGroup as found:
            lost, _ = found.split(LeaseLostError)
            raise (lost or found).exceptions[0] from None
        finally:
            await self._release()

    async def _take(self) -> None:
        while not await self.attempt():
            await asyncio.sleep(self._times.renew_s)
        logger.info("this operator acts now", extra={"identity": self._me})

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._times.renew_s)
            if await self.attempt():
                continue
            if not self.is_leader or self._clock() - self._renewed >= self._times.give_up_s:
                self.is_leader = False
                raise LeaseLostError(
                    f"the Lease {self._namespace}/{self._name} could not be renewed; "
                    "another operator may act, so this one ends"
                )

    async def attempt(self) -> bool:
        """Take or renew the Lease, once; returns whether it is held now."""
        try:
            async with asyncio.timeout(self._times.answer_s):
                return await self._attempt()
        except TimeoutError:
            reason = f"the API did not answer within {self._times.answer_s:g} s"
        except errors.KubeError as error:
            reason = error.message
        logger.warning("Lease not renewed", extra={"reason": reason})
        return False

    async def _attempt(self) -> bool:
        started = self._clock()
        try:
            self._look(await self._kube.get(LEASE, self._namespace, self._name))
        except errors.MissingError:
            return self._took(started, await self._kube.create(self._wanted()))
        if not may_take(self._seen, self._me, self._clock(), self._times):
            self.is_leader = False
            return False
        try:
            merged = await self._kube.merge(
                LEASE, self._namespace, self._name, self._wanted(self._version)
            )
        except errors.ConflictError:
            # Somebody else was quicker.
            return False
        return self._took(started, merged)

    def _look(self, lease: Object) -> None:
        spec = lease.get("spec") or {}
        holder, stamp = spec.get("holderIdentity") or "", str(spec.get("renewTime"))
        self._version = lease["metadata"]["resourceVersion"]
        self._transitions = int(spec.get("leaseTransitions") or 0)
        if self._seen is None or (self._seen.holder, self._seen.stamp) != (holder, stamp):
            self._seen = Sighting(holder, stamp, self._clock())

    def _took(self, started: float, lease: Object) -> bool:
        self._look(lease)
        self._renewed = started
        self.is_leader = True
        return True

    def _wanted(self, version: str = "") -> Object:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        is_new = self._seen is None or self._seen.holder != self._me
        spec = {
            "holderIdentity": self._me,
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
        """Let the next one begin at once."""
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
