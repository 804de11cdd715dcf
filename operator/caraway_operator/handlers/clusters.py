"""Handles changes of `CarawayCluster` resources."""

from typing import Any

import kopf

from caraway_kube.api.kinds import CLUSTER
from caraway_operator.handlers.events import plain_object
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import ResourceCache, key


def register_handler(
    registry: kopf.OperatorRegistry, resources: ResourceCache, controller: Controller
) -> None:
    """Reconcile a cluster after every change, including changes of its status."""

    # Any: further keyword arguments of kopf.
    @kopf.on.event(CLUSTER.group, "v1alpha1", CLUSTER.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        handle_cluster(resources, controller, event["type"], plain_object(event["object"], CLUSTER))


def handle_cluster(
    resources: ResourceCache, controller: Controller, type_: str | None, cluster: dict[str, Any]
) -> None:
    """Store or remove a cluster, and enqueue it."""
    which = key(cluster)
    if type_ == "DELETED":
        resources.drop_cluster(cluster)
    else:
        resources.put_cluster(cluster)
    controller.enqueue(*which)
