"""Changes of `CarawayCluster` resources."""

from typing import Any

import kopf

from caraway_operator.controller import Controller
from caraway_operator.handlers.events import plain
from caraway_operator.known import Known, key
from caraway_operator.kube.kinds import CLUSTER


def register(registry: kopf.OperatorRegistry, known: Known, controller: Controller) -> None:
    """Have every change of a cluster, also of its status, looked at."""

    # Any: what kopf hands over beside what is asked for.
    @kopf.on.event(CLUSTER.group, "v1alpha1", CLUSTER.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        take(known, controller, event["type"], plain(event["object"], CLUSTER))


def take(known: Known, controller: Controller, type_: str | None, cluster: dict[str, Any]) -> None:
    """Take note of a cluster as it is now, or of its end."""
    which = key(cluster)
    if type_ == "DELETED":
        known.drop_cluster(cluster)
    else:
        known.put_cluster(cluster)
    controller.poke(*which)
