"""Assembles and runs the operator: watches, controller, reconciler and kopf."""

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import kopf

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_kube import naming
from caraway_kube.api import errors, watching
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CLUSTER, CONFIG_MAP, LIMITS, WATCHED, Object, ResourceKind
from caraway_operator import handlers
from caraway_operator.kube.events import EventRecorder
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.metrics import ReconcileStats
from caraway_operator.reconciling.reconcile import Reconciler
from caraway_operator.scheduler_client import SchedulerClient
from caraway_operator.watching import limits_config_maps
from caraway_operator.watching.controller import Controller, Reconcile
from caraway_operator.watching.resource_cache import Key, ResourceCache, deleted_keys, key

logger = logging.getLogger(__name__)
SELECTOR = f"{naming.NAME_LABEL}=caraway"
_DELAYS = Delays(1.0, 10.0, jitter=0.2)
_DISCOVERY_S = 300.0
_LOGIN_S = 600


@dataclass(slots=True)
class Operator:
    """An operator for the given namespaces, or for all of them."""

    access: ApiAccess
    kube: KubeClient
    schedulers: SchedulerClient
    identity: str
    version: str
    namespaces: Sequence[str] = ()
    clock: SecondsClock = time.time
    resources: ResourceCache = field(default_factory=ResourceCache)
    objects: ObjectCache = field(default_factory=ObjectCache)
    stats: ReconcileStats = field(default_factory=ReconcileStats)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the caches are complete."""
    skipped: Sequence[str] = ()
    """Namespaces that the operator is not allowed to read."""

    async def run_operator(self) -> None:
        """Reconcile clusters until cancelled. The caller must hold the Lease."""
        await self._wait_for_kinds()
        await self._skip_forbidden()
        recorder = EventRecorder(self.kube, self.identity, self.clock)
        reconciler = Reconciler(
            self.kube,
            self.schedulers,
            self.objects,
            self.resources,
            recorder,
            self.clock,
            self.version,
        )
        controller = Controller(self._measured(reconciler), time.monotonic)
        self.objects.changed = controller.enqueue
        optional = await self._optional_kinds()
        reconciler.kinds = frozenset(kind.name for kind in optional)
        kinds = [kind for kind in WATCHED if not kind.is_optional or kind in optional]
        async with asyncio.TaskGroup() as group:
            watchers = [
                *watching.watchers(self.kube, kinds, self.namespaces, SELECTOR, self.objects),
                *self._limits_watchers(controller),
            ]
            tasks = [group.create_task(watcher.run_watch()) for watcher in watchers]
            for watcher in watchers:
                # With an incomplete cache, existing objects would look as if they were missing.
                await watcher.listed.wait()
            await self._list_resources(controller)
            self.listed.set()
            tasks = [
                *tasks,
                group.create_task(controller.run_workers()),
                group.create_task(self._discover(reconciler, controller, group)),
            ]
            # kopf handles the signals of the process, and returns after one.
            await self._run_kopf(controller)
            for task in tasks:
                task.cancel()

    def _limits_watchers(self, controller: Controller) -> list[watching.ObjectWatcher]:
        def changed(namespace: str) -> None:
            for where, name in self.resources.clusters:
                if where == namespace:
                    controller.enqueue(where, name)

        maps = limits_config_maps.LimitsConfigMaps(self.resources, changed)
        return watching.watchers(
            self.kube, [CONFIG_MAP], self.namespaces, limits_config_maps.SELECTOR, maps
        )

    def _measured(self, reconciler: Reconciler) -> Reconcile:
        async def reconcile(which: Key) -> float | None:
            cluster = self.resources.clusters.get(which)
            if cluster is None:
                reconciler.forget_cluster(which)
                return None
            started = time.perf_counter()
            outcome = "failed"
            try:
                result = await reconciler.reconcile(cluster)
                outcome = "failed" if result.failed else "ok"
                return result.requeue_after_s
            finally:
                self.stats.reconciles[outcome] += 1
                self.stats.durations.add((), (time.perf_counter() - started) * 1000)

        return reconcile

    async def _list_resources(self, controller: Controller) -> None:
        """List all limits, then all clusters: a cluster needs its limits to be known."""
        for namespace in self.namespaces or (None,):
            for limits in await self._list(LIMITS, namespace):
                self.resources.limits[key(limits)] = limits
            for cluster in await self._list(CLUSTER, namespace):
                self.resources.put_cluster(cluster)
                controller.enqueue(*key(cluster))

    async def _list(self, kind: ResourceKind, namespace: str | None) -> Sequence[Object]:
        again = Backoff(_DELAYS)
        while True:
            try:
                return (await self.kube.list(kind, namespace)).items
            except errors.KubeError as error:
                logger.warning("cannot list", extra={"kind": kind.name, "reason": error.message})
                await asyncio.sleep(again.failed())

    async def _run_kopf(self, controller: Controller) -> None:
        """Let kopf watch the custom resources and call the handlers."""
        registry = kopf.OperatorRegistry()
        handlers.register_handlers(registry, self.resources, controller)

        @kopf.on.login(registry=registry)
        def login(**_: object) -> kopf.ConnectionInfo:
            return connection(self.access)

        settings = kopf.OperatorSettings()
        # kopf's own events describe its internals. Users need the operator's events only.
        settings.posting.enabled = False
        # The kinds are known to exist, so kopf needs neither to look for them nor the right to.
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
            # By default kopf asks for the user's name, which a container may not have.
            identity=cast(Any, self.identity),
        )

    async def _wait_for_kinds(self) -> None:
        """Wait until the API server serves the CRDs, which a chart may install after the pods."""
        again = Backoff(_DELAYS)
        while True:
            try:
                if await self.kube.serves(CLUSTER) and await self.kube.serves(LIMITS):
                    return
                logger.warning("waiting for the CRDs of Caraway to be installed")
            except errors.KubeError as error:
                logger.warning("the API server does not respond", extra={"reason": error.message})
            await asyncio.sleep(again.failed())

    async def _skip_forbidden(self) -> None:
        """Skip namespaces that may not be read: their roles are gone if they were deleted.

        If none may be read, the roles are probably not created yet, and nothing is skipped.
        """
        forbidden = [each for each in self.namespaces if not await self._may_read(each)]
        if len(forbidden) == len(self.namespaces):
            return
        for each in forbidden:
            logger.error("skipping a namespace that may not be read", extra={"skipped": each})
        self.skipped = forbidden
        self.namespaces = [each for each in self.namespaces if each not in forbidden]

    async def _may_read(self, namespace: str) -> bool:
        try:
            await self.kube.list(CLUSTER, namespace)
        except errors.RequestRejectedError:
            return False
        except errors.KubeError:
            return True
        return True

    async def check_skipped(self) -> None:
        """End the process if a skipped namespace may be read now.

        Raises:
            CarawayError: the operator must restart to include that namespace.
        """
        for each in self.skipped:
            if await self._may_read(each):
                raise CarawayError(
                    f"the namespace '{each}' can be read now; the operator restarts to include it"
                )

    async def _optional_kinds(self) -> set[ResourceKind]:
        found = set()
        for kind in WATCHED:
            try:
                if kind.is_optional and await self.kube.serves(kind):
                    found.add(kind)
            except errors.KubeError as error:
                reason = {"kind": kind.name, "reason": error.message}
                logger.warning("cannot tell whether the API server serves a kind", extra=reason)
        return found

    async def forget_missing(self, controller: Controller) -> None:
        """Forget resources deleted while a watch was broken, which kopf does not report."""
        for namespace in self.namespaces or (None,):
            for kind, known in (
                (CLUSTER, self.resources.clusters),
                (LIMITS, self.resources.limits),
            ):
                try:
                    listing = await self.kube.list(kind, namespace)
                except errors.KubeError as error:
                    reason = {"kind": kind.name, "reason": error.message}
                    logger.warning("cannot list", extra=reason)
                    continue
                for which in deleted_keys(known, listing.items, listing.version, namespace):
                    if limits_config_maps.is_config_map(which):
                        continue
                    del known[which]
                    for each in list(self.resources.clusters) if kind is LIMITS else (which,):
                        controller.enqueue(*each)

    async def _discover(
        self, reconciler: Reconciler, controller: Controller, group: asyncio.TaskGroup
    ) -> None:
        """Check regularly for changes that no watch reports."""
        while True:
            await asyncio.sleep(_DISCOVERY_S)
            await self.forget_missing(controller)
            await self.check_skipped()
            for kind in await self._optional_kinds():
                if kind.name in reconciler.kinds:
                    continue
                watchers = watching.watchers(
                    self.kube, [kind], self.namespaces, SELECTOR, self.objects
                )
                for watcher in watchers:
                    group.create_task(watcher.run_watch())
                for watcher in watchers:
                    await watcher.listed.wait()
                reconciler.kinds |= {kind.name}


def connection(access: ApiAccess) -> kopf.ConnectionInfo:
    """Return the access in kopf's form. It expires, so that a rotated token is read again."""
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
