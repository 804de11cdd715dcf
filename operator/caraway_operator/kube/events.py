"""Tells users what the operator does, as Events of their cluster; repeated ones are counted."""

import datetime as dt
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from caraway_operator.kube import errors
from caraway_operator.kube.client import FIELD_MANAGER, Kube
from caraway_operator.kube.kinds import EVENT, KINDS, Object, Ref

logger = logging.getLogger(__name__)
_REMEMBERED = 2000
_AGAIN_S = 600.0
_LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that users are told. `action` is what the operator did or tried, in one word."""

    reason: str
    note: str
    action: str = "Reconcile"
    type: Literal["Normal", "Warning"] = "Normal"
    related: Ref | None = None
    """The object that something was done with. Such an event is written each time."""


@dataclass(slots=True)
class Recorder:
    """Writes events. What goes on, such as a refusal, is not written again for ten minutes."""

    kube: Kube
    instance: str
    clock: Callable[[], float]
    _told: OrderedDict[str, float] = field(default_factory=OrderedDict)

    async def tell(self, cluster: Object, happening: Happening) -> None:
        """Write an event; one that cannot be written is logged and stops nothing."""
        key = _key(cluster, happening)
        now = self.clock()
        is_known = now - self._told.get(key, -_AGAIN_S) < _AGAIN_S
        if is_known and happening.related is None:
            return
        self._told[key] = now
        self._told.move_to_end(key)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        logger.info(
            happening.note,
            extra={
                "namespace": cluster["metadata"]["namespace"],
                "cluster": cluster["metadata"]["name"],
                "reason": happening.reason,
            },
        )
        try:
            await self.kube.create(self._event(cluster, happening, key))
        except errors.KubeError as error:
            logger.warning("event not written", extra={"reason": error.message})

    def _event(self, cluster: Object, happening: Happening, key: str) -> Object:
        metadata = cluster["metadata"]
        now = dt.datetime.now(dt.UTC)
        related = happening.related
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {
                "name": f"{metadata['name']}.{key[:8]}{int(now.timestamp() * 1000):x}",
                "namespace": metadata["namespace"],
            },
            "eventTime": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "reportingController": f"caraway.dev/{FIELD_MANAGER}",
            "reportingInstance": self.instance[:128],
            "action": happening.action,
            "reason": happening.reason,
            "type": happening.type,
            "note": _cut(happening.note),
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


def _reference(which: Ref) -> Object:
    version = KINDS[which.kind].api_version
    return {
        "apiVersion": version,
        "kind": which.kind,
        "namespace": which.namespace,
        "name": which.name,
    }


def _key(cluster: Object, happening: Happening) -> str:
    text = "\n".join((cluster["metadata"]["uid"], happening.reason, happening.note))
    return hashlib.sha256(text.encode()).hexdigest()


def _cut(note: str) -> str:
    # The API counts bytes.
    return note.encode()[:_LONGEST_NOTE].decode(errors="ignore")
