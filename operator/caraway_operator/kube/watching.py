"""Keeps objects as the API has them: a list, then a watch, then again from where it ended."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from caraway_core.backoff import Backoff, Delays
from caraway_operator.kube import errors
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import Kind, Object, Ref, ref

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.25, 15.0, jitter=1.0)
_HELD_S = 10.0


class Sink(Protocol):
    """Takes what a watcher sees."""

    def put(self, object_: Object) -> None:
        """Take an object as it is now."""
        ...

    def drop(self, which: Ref, uid: str = "") -> None:
        """Forget an object."""
        ...

    def replace(self, kind: Kind, namespaces: Iterable[str] | None, found: list[Object]) -> None:
        """Take a whole listing: what it does not name is gone."""
        ...


class Watcher:
    """Watches one kind in one namespace, or everywhere."""

    def __init__(
        self,
        kube: Kube,
        kind: Kind,
        namespace: str | None,
        selector: str,
        objects: Sink,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
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
        """Is set once everything that there was is known."""

    async def run(self) -> None:
        """Watch until cancelled."""
        version = ""
        while True:
            began = self._clock()
            try:
                version = await self._follow(version or await self._list())
            except errors.ExpiredError:
                version = ""
            except errors.KubeError as error:
                version = "" if error.is_lasting else version
                logger.warning(
                    "watch broken",
                    extra={"kind": self._kind.name, "reason": error.message},
                )
            # One that held for a while was only cut: of kinds that seldom change nothing else
            # would ever shorten the pause again.
            if self._clock() - began >= _HELD_S:
                self._again.succeeded()
            # Also after a watch that just ended: an API that ends them at once is not hammered.
            await self._sleep(self._again.failed())

    async def _list(self) -> str:
        listing = await self._kube.list(self._kind, self._namespace, self._selector)
        within = None if self._namespace is None else (self._namespace,)
        self._objects.replace(self._kind, within, listing.items)
        self.listed.set()
        return listing.version

    async def _follow(self, version: str) -> str:
        async for type_, object_ in self._kube.watch(
            self._kind, self._namespace, self._selector, version
        ):
            self._again.succeeded()
            version = object_["metadata"].get("resourceVersion", version)
            self._take(type_, object_)
        return version

    def _take(self, type_: str, object_: Object) -> None:
        match type_:
            case "ADDED" | "MODIFIED":
                self._objects.put(object_)
            case "DELETED":
                self._objects.drop(ref(object_), object_["metadata"].get("uid", ""))


def watchers(
    kube: Kube,
    kinds: Sequence[Kind],
    namespaces: Sequence[str],
    selector: str,
    objects: Sink,
) -> list[Watcher]:
    """Return a watcher of each kind in each namespace; no namespaces are all of them."""
    return [
        Watcher(kube, kind, namespace, selector, objects)
        for kind in kinds
        for namespace in (namespaces or (None,))
    ]
