"""Changes of `CarawayLimits` resources: they concern every cluster of their namespace."""

from typing import Any

import kopf

from caraway_operator.controller import Controller
from caraway_operator.handlers.events import plain
from caraway_operator.known import Known, key
from caraway_operator.kube.kinds import LIMITS


def register(registry: kopf.OperatorRegistry, known: Known, controller: Controller) -> None:
    """Have the clusters of the namespace looked at when limits change."""

    # Any: what kopf hands over beside what is asked for.
    @kopf.on.event(LIMITS.group, "v1alpha1", LIMITS.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        take(known, controller, event["type"], plain(event["object"], LIMITS))


def take(known: Known, controller: Controller, type_: str | None, limits: dict[str, Any]) -> None:
    """Take note of limits as they are now, or of their end."""
    if type_ == "DELETED":
        known.limits.pop(key(limits), None)
    else:
        known.limits[key(limits)] = limits
    namespace = limits["metadata"]["namespace"]
    for where, name in known.clusters:
        if where == namespace:
            controller.poke(where, name)
