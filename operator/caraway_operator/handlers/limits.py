"""Handles changes of `CarawayLimits` resources, which affect every cluster of their namespace."""

from typing import Any

import kopf

from caraway_kube.api.kinds import LIMITS
from caraway_operator.handlers.events import plain_object
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import ResourceCache, key


def register_handler(
    registry: kopf.OperatorRegistry, resources: ResourceCache, controller: Controller
) -> None:
    """Reconcile the clusters of the namespace when limits change."""

    # Any: further keyword arguments of kopf.
    @kopf.on.event(LIMITS.group, "v1alpha1", LIMITS.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        handle_limits(resources, controller, event["type"], plain_object(event["object"], LIMITS))


def handle_limits(
    resources: ResourceCache, controller: Controller, type_: str | None, limits: dict[str, Any]
) -> None:
    """Store or remove limits, and enqueue the clusters of their namespace."""
    if type_ == "DELETED":
        resources.limits.pop(key(limits), None)
    else:
        resources.limits[key(limits)] = limits
    namespace = limits["metadata"]["namespace"]
    for where, name in resources.clusters:
        if where == namespace:
            controller.enqueue(where, name)
