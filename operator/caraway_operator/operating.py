"""The parts of the operator, put together: what watches, what decides, what writes."""

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import kopf

from caraway_core.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_operator import handlers, limit_maps, naming
from caraway_operator.controller import Controller, Look
from caraway_operator.known import Key, Known, gone, key
from caraway_operator.kube import errors, watching
from caraway_operator.kube.access import Access
from caraway_operator.kube.client import Kube
from caraway_operator.kube.events import Recorder
from caraway_operator.kube.kinds import CLUSTER, CONFIG_MAP, LIMITS, WATCHED, Kind, Object
from caraway_operator.kube.objects import Objects
from caraway_operator.metrics import Tallies
from caraway_operator.reconcile import Reconciler
from caraway_operator.scheduler_link import Link

logger = logging.getLogger(__name__)
SELECTOR = f"{naming.NAME_LABEL}=caraway"
_DELAYS = Delays(1.0, 10.0, jitter=0.2)
_DISCOVERY_S = 300.0
_LOGIN_S = 600


@dataclass(slots=True)
class Operator:
    """One operator. Without namespaces it looks after all of them."""

    access: Access
    kube: Kube
    link: Link
    identity: str
    version: str
    namespaces: Sequence[str] = ()
    clock: Callable[[], float] = time.time
    known: Known = field(default_factory=Known)
    objects: Objects = field(default_factory=Objects)
    tallies: Tallies = field(default_factory=Tallies)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Is set once everything that there was is known."""
    left_out: Sequence[str] = ()
    """Namespaces that may not be read."""

    async def run(self) -> None:
        """Look after clusters until cancelled, as the only operator that does."""
        await self._wait_for_kinds()
        await self._leave_out_forbidden()
        recorder = Recorder(self.kube, self.identity, self.clock)
        reconciler = Reconciler(
            self.kube, self.link, self.objects, self.known, recorder, self.clock, self.version
        )
        controller = Controller(self._look(reconciler), time.monotonic)
        self.objects.changed = controller.poke
        optional = await self._optional()
        reconciler.kinds = frozenset(kind.name for kind in optional)
        kinds = [kind for kind in WATCHED if not kind.is_optional or kind in optional]
        async with asyncio.TaskGroup() as group:
            watchers = [
                *watching.watchers(self.kube, kinds, self.namespaces, SELECTOR, self.objects),
                *self._limit_maps(controller),
            ]
            tasks = [group.create_task(watcher.run()) for watcher in watchers]
            for watcher in watchers:
                # What is there must be known before anything is judged to be missing.
                await watcher.listed.wait()
            await self._list(controller)
            self.listed.set()
            tasks = [
                *tasks,
                group.create_task(controller.run()),
                group.create_task(self._discover(reconciler, controller, group)),
            ]
            # It takes the signals of the process, and ends when one says so.
            await self._watch(controller)
            for task in tasks:
                task.cancel()

    def _limit_maps(self, controller: Controller) -> list[watching.Watcher]:
        def changed(namespace: str) -> None:
            for where, name in self.known.clusters:
                if where == namespace:
                    controller.poke(where, name)

        maps = limit_maps.LimitMaps(self.known, changed)
        return watching.watchers(
            self.kube, [CONFIG_MAP], self.namespaces, limit_maps.SELECTOR, maps
        )

    def _look(self, reconciler: Reconciler) -> Look:
        async def look(which: Key) -> float | None:
            cluster = self.known.clusters.get(which)
            if cluster is None:
                reconciler.forget(which)
                return None
            started = time.perf_counter()
            outcome = "failed"
            try:
                found = await reconciler.reconcile(cluster)
                outcome = "failed" if found.failed else "ok"
                return found.again_s
            finally:
                self.tallies.looks[outcome] += 1
                self.tallies.durations.add((), (time.perf_counter() - started) * 1000)

        return look

    async def _list(self, controller: Controller) -> None:
        """Read all clusters and limits once: no cluster is judged before its limits are known."""
        for namespace in self.namespaces or (None,):
            for limits in await self._listed(LIMITS, namespace):
                self.known.limits[key(limits)] = limits
            for cluster in await self._listed(CLUSTER, namespace):
                self.known.put_cluster(cluster)
                controller.poke(*key(cluster))

    async def _listed(self, kind: Kind, namespace: str | None) -> Sequence[Object]:
        again = Backoff(_DELAYS)
        while True:
            try:
                return (await self.kube.list(kind, namespace)).items
            except errors.KubeError as error:
                logger.warning("cannot list", extra={"kind": kind.name, "reason": error.message})
                await asyncio.sleep(again.failed())

    async def _watch(self, controller: Controller) -> None:
        """Have kopf tell of every change from here on."""
        registry = kopf.OperatorRegistry()
        handlers.register(registry, self.known, controller)

        @kopf.on.login(registry=registry)
        def login(**_: object) -> kopf.ConnectionInfo:
            return connection(self.access)

        settings = kopf.OperatorSettings()
        # Our own events say what users should know; kopf's say what it does inside.
        settings.posting.enabled = False
        # The kinds are known to be there: nothing more needs to be read, or allowed to be.
        settings.scanning.disabled = True
        settings.watching.server_timeout = 300
        settings.watching.client_timeout = 360
        settings.process.ultimate_exiting_timeout = None
        await kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            clusterwide=not self.namespaces,
            namespaces=list(self.namespaces),
            # Otherwise kopf asks for the user's name, which a container may not have.
            identity=cast(Any, self.identity),
        )

    async def _wait_for_kinds(self) -> None:
        """Wait until the API has our kinds: a chart's CRDs may come a moment after its pods."""
        again = Backoff(_DELAYS)
        while True:
            try:
                if await self.kube.serves(CLUSTER) and await self.kube.serves(LIMITS):
                    return
                logger.warning("the CRDs of Caraway are not installed; waiting for them")
            except errors.KubeError as error:
                logger.warning("the API does not answer", extra={"reason": error.message})
            await asyncio.sleep(again.failed())

    async def _leave_out_forbidden(self) -> None:
        """Go on without namespaces that were deleted: their roles went along, those of others not.

        Where none can be read the rights may only be late, and are waited for.
        """
        forbidden = [each for each in self.namespaces if not await self._may_read(each)]
        if len(forbidden) == len(self.namespaces):
            return
        for each in forbidden:
            logger.error("namespace left out: it may not be read", extra={"left_out": each})
        self.left_out = forbidden
        self.namespaces = [each for each in self.namespaces if each not in forbidden]

    async def _may_read(self, namespace: str) -> bool:
        try:
            await self.kube.list(CLUSTER, namespace)
        except errors.RefusedError:
            return False
        except errors.KubeError:
            return True
        return True

    async def take_in_again(self) -> None:
        """End the process once a namespace that was left out can be read.

        Raises:
            CarawayError: it begins anew, and looks after that one as well.
        """
        for each in self.left_out:
            if await self._may_read(each):
                raise CarawayError(
                    f"the namespace '{each}' can be read now; the operator begins anew with it"
                )

    async def _optional(self) -> set[Kind]:
        found = set()
        for kind in WATCHED:
            try:
                if kind.is_optional and await self.kube.serves(kind):
                    found.add(kind)
            except errors.KubeError as error:
                logger.warning("cannot look", extra={"kind": kind.name, "reason": error.message})
        return found

    async def forget_missing(self, controller: Controller) -> None:
        """Forget what went while the watch was broken: kopf tells of no end that it did not see."""
        for namespace in self.namespaces or (None,):
            for kind, held in ((CLUSTER, self.known.clusters), (LIMITS, self.known.limits)):
                try:
                    listing = await self.kube.list(kind, namespace)
                except errors.KubeError as error:
                    reason = {"kind": kind.name, "reason": error.message}
                    logger.warning("cannot list", extra=reason)
                    continue
                for which in gone(held, listing.items, listing.version, namespace):
                    if limit_maps.is_map(which):
                        continue
                    del held[which]
                    for each in list(self.known.clusters) if kind is LIMITS else (which,):
                        controller.poke(*each)

    async def _discover(
        self, reconciler: Reconciler, controller: Controller, group: asyncio.TaskGroup
    ) -> None:
        """Look now and then for what the watches cannot show."""
        while True:
            await asyncio.sleep(_DISCOVERY_S)
            await self.forget_missing(controller)
            await self.take_in_again()
            for kind in await self._optional():
                if kind.name in reconciler.kinds:
                    continue
                watchers = watching.watchers(
                    self.kube, [kind], self.namespaces, SELECTOR, self.objects
                )
                for watcher in watchers:
                    group.create_task(watcher.run())
                for watcher in watchers:
                    await watcher.listed.wait()
                reconciler.kinds |= {kind.name}


def connection(access: Access) -> kopf.ConnectionInfo:
    """Return the access as kopf takes it; the token is read again when this one may have ended."""
    return kopf.ConnectionInfo(
        server=access.server,
        ca_path=str(access.ca_file) if access.ca_file else None,
        ca_data=access.ca_text.encode() if access.ca_text else None,
        insecure=access.is_unverified or None,
        token=access.read_token(),
        certificate_data=access.certificate[0].encode() if access.certificate else None,
        private_key_data=access.certificate[1].encode() if access.certificate else None,
        default_namespace=access.namespace,
        expiration=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=_LOGIN_S),
    )
