"""Handlers that kopf calls when a custom resource changes. They update the cache and the queue.

They are event handlers, so kopf writes nothing: neither finalizers nor annotations.
"""

from collections.abc import Mapping
from typing import Any

import kopf

from caraway_kube.api.kinds import CLUSTER, LIMITS, Object, ResourceKind
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import ResourceCache, key

_VERSION = "v1alpha1"


def register_handlers(
    registry: kopf.OperatorRegistry, resources: ResourceCache, controller: Controller
) -> None:
    """Register all handlers with kopf."""

    @kopf.on.event(CLUSTER.group, _VERSION, CLUSTER.plural, registry=registry)
    async def changed_cluster(event: kopf.RawEvent, **_: object) -> None:
        handle_cluster(resources, controller, event["type"], plain_object(event["object"], CLUSTER))

    @kopf.on.event(LIMITS.group, _VERSION, LIMITS.plural, registry=registry)
    async def changed_limits(event: kopf.RawEvent, **_: object) -> None:
        handle_limits(resources, controller, event["type"], plain_object(event["object"], LIMITS))


def handle_cluster(
    resources: ResourceCache, controller: Controller, type_: str | None, cluster: Object
) -> None:
    """Store or remove a cluster, and enqueue it: also when only its status changed."""
    if type_ == "DELETED":
        resources.drop_cluster(cluster)
    else:
        resources.put_cluster(cluster)
    controller.enqueue(*key(cluster))


def handle_limits(
    resources: ResourceCache, controller: Controller, type_: str | None, limits: Object
) -> None:
    """Store or remove limits, and enqueue all clusters of their namespace."""
    if type_ == "DELETED":
        resources.limits.pop(key(limits), None)
    else:
        resources.limits[key(limits)] = limits
    namespace = limits["metadata"]["namespace"]
    for where, name in resources.clusters:
        if where == namespace:
            controller.enqueue(where, name)


# Any: kopf's types are no more precise.
def plain_object(body: Mapping[str, Any], kind: ResourceKind) -> Object:
    """Return the object in the form that the client returns, without its managed fields."""
    metadata = {
        field: value for field, value in dict(body["metadata"]).items() if field != "managedFields"
    }
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
