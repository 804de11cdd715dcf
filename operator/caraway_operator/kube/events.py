"""Records Kubernetes Events for a cluster, without repetitions."""

import datetime as dt
import hashlib
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.concurrency.clocks import SecondsClock
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import EVENT, KINDS, Object, ObjectRef

logger = logging.getLogger(__name__)
_REMEMBERED = 2000
_AGAIN_S = 600.0
_LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class EventContent:
    """The content of an Event. `action` is what the operator did or tried, in one word."""

    reason: str
    note: str
    action: str = "Reconcile"
    type: Literal["Normal", "Warning"] = "Normal"
    related: ObjectRef | None = None
    """The object that was changed. Events with one are always recorded."""


@dataclass(slots=True)
class EventRecorder:
    """Records Events. The same event without a related object is recorded every ten minutes."""

    kube: KubeClient
    instance: str
    clock: SecondsClock
    _told: OrderedDict[str, float] = field(default_factory=OrderedDict)

    async def record_event(self, cluster: Object, event: EventContent) -> None:
        """Record an event. If that fails, only a warning is logged."""
        key = _key(cluster, event)
        now = self.clock()
        is_known = now - self._told.get(key, -_AGAIN_S) < _AGAIN_S
        if is_known and event.related is None:
            return
        self._told[key] = now
        self._told.move_to_end(key)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        logger.info(
            event.note,
            extra={
                "namespace": cluster["metadata"]["namespace"],
                "cluster": cluster["metadata"]["name"],
                "reason": event.reason,
            },
        )
        try:
            await self.kube.create(self._event(cluster, event, key))
        except errors.KubeError as error:
            logger.warning("cannot record the event", extra={"reason": error.message})

    def _event(self, cluster: Object, event: EventContent, key: str) -> Object:
        metadata = cluster["metadata"]
        now = dt.datetime.now(dt.UTC)
        related = event.related
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {
                "name": f"{metadata['name']}.{key[:8]}{int(now.timestamp() * 1000):x}",
                "namespace": metadata["namespace"],
            },
            "eventTime": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "reportingController": f"caraway.dev/{self.kube.manager}",
            "reportingInstance": self.instance[:128],
            "action": event.action,
            "reason": event.reason,
            "type": event.type,
            "note": _cut(event.note),
            "regarding": {
                "apiVersion": cluster["apiVersion"],
                "kind": cluster["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            **({"related": _reference(related)} if related else {}),
        }


def _reference(which: ObjectRef) -> Object:
    version = KINDS[which.kind].api_version
    return {
        "apiVersion": version,
        "kind": which.kind,
        "namespace": which.namespace,
        "name": which.name,
    }


def _key(cluster: Object, event: EventContent) -> str:
    text = "\n".join((cluster["metadata"]["uid"], event.reason, event.note))
    return hashlib.sha256(text.encode()).hexdigest()


def _cut(note: str) -> str:
    # The API server counts bytes.
    return note.encode()[:_LONGEST_NOTE].decode(errors="ignore")
