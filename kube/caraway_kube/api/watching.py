"""Keeps a cache up to date: lists the objects, then watches them, and resumes broken watches."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import AsyncSleep, SecondsClock
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import Object, ObjectRef, ResourceKind, ref

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.25, 15.0, jitter=1.0)
_HELD_S = 10.0


class WatchSink(Protocol):
    """Stores the objects that a watcher receives."""

    def put(self, object_: Object) -> None:
        """Store an object."""
        ...

    def drop(self, which: ObjectRef, uid: str = "") -> None:
        """Remove an object."""
        ...

    def replace(
        self, kind: ResourceKind, namespaces: Iterable[str] | None, found: list[Object]
    ) -> None:
        """Store the objects of a list, and remove those that are not in it."""
        ...


class ObjectWatcher:
    """Watches one kind in one namespace, or in all namespaces."""

    def __init__(
        self,
        kube: KubeClient,
        kind: ResourceKind,
        namespace: str | None,
        selector: str,
        objects: WatchSink,
        clock: SecondsClock = time.monotonic,
        sleep: AsyncSleep = asyncio.sleep,
    ) -> None:
        self._kube = kube
        self._kind = kind
        self._namespace = namespace
        self._selector = selector
        self._objects = objects
        self._clock = clock
        self._sleep = sleep
        self._again = Backoff(_DELAYS)
        self.listed = asyncio.Event()
        """Set after the first list."""
        self.is_live = False
        """True if the watch has not broken since the objects were listed."""

    async def run_watch(self) -> None:
        """List and watch until cancelled."""
        version = ""
        while True:
            began = self._clock()
            try:
                version = await self._follow(version or await self._list())
            except errors.ExpiredError:
                version = ""
            except errors.KubeError as error:
                self.is_live = False
                version = "" if error.is_lasting else version
                logger.warning(
                    "the watch broke",
                    extra={"kind": self._kind.name, "reason": error.message},
                )
            # A watch that lasted a while was only interrupted. For kinds that rarely change,
            # nothing else would reset the delay.
            if self._clock() - began >= _HELD_S:
                self._again.succeeded()
            # Also after a normal end, in case the API server ends watches at once.
            await self._sleep(self._again.failed())

    async def _list(self) -> str:
        listing = await self._kube.list(self._kind, self._namespace, self._selector)
        within = None if self._namespace is None else (self._namespace,)
        self._objects.replace(self._kind, within, listing.items)
        self.is_live = True
        self.listed.set()
        return listing.version

    async def _follow(self, version: str) -> str:
        async for type_, object_ in self._kube.watch(
            self._kind, self._namespace, self._selector, version
        ):
            self._again.succeeded()
            self.is_live = True
            version = object_["metadata"].get("resourceVersion", version)
            self._store_event(type_, object_)
        return version

    def _store_event(self, type_: str, object_: Object) -> None:
        match type_:
            case "ADDED" | "MODIFIED":
                self._objects.put(object_)
            case "DELETED":
                self._objects.drop(ref(object_), object_["metadata"].get("uid", ""))


def watchers(
    kube: KubeClient,
    kinds: Sequence[ResourceKind],
    namespaces: Sequence[str],
    selector: str,
    objects: WatchSink,
) -> list[ObjectWatcher]:
    """Return a watcher for each kind in each namespace, or in all if no namespaces are given."""
    return [
        ObjectWatcher(kube, kind, namespace, selector, objects)
        for kind in kinds
        for namespace in (namespaces or (None,))
    ]
