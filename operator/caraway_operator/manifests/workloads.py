"""StatefulSets, as all of them are."""

from caraway_operator import naming
from caraway_operator.manifests import volumes
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources.pods import Storage

REVISIONS = 3


def stateful_set(
    wanted: Wanted,
    component: str,
    replicas: int,
    template: Object,
    *,
    partition: int = 0,
    storage: Storage | None = None,
    retention: Object | None = None,
) -> Object:
    """Return the StatefulSet of a component."""
    name = naming.of(wanted.name, component)
    spec: Object = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": naming.selector(wanted.name, component)},
        # Pods do not wait for each other to start; they are replaced one by one all the same.
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": REVISIONS,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "template": template,
    }
    if storage is not None and (claims := volumes.claims(wanted, component, storage)):
        spec["volumeClaimTemplates"] = claims
        spec["persistentVolumeClaimRetentionPolicy"] = retention
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(wanted, name, component),
        "spec": spec,
    }


def retention(*, when_deleted: bool, when_scaled: bool) -> Object:
    """Return what becomes of claims: True keeps them."""
    words = {True: "Retain", False: "Delete"}
    return {"whenDeleted": words[when_deleted], "whenScaled": words[when_scaled]}
