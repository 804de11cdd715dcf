"""StatefulSets: the fields that all components have in common."""

from caraway_kube import naming
from caraway_kube.resources.pods import StorageSpec
from caraway_operator.manifests import volumes
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

REVISIONS = 3


def stateful_set(
    desired: DesiredCluster,
    component: str,
    replicas: int,
    template: Object,
    *,
    partition: int = 0,
    storage: StorageSpec | None = None,
    retention: Object | None = None,
) -> Object:
    """Return the StatefulSet of a component."""
    name = naming.object_name(desired.name, component)
    spec: Object = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": naming.component_selector(desired.name, component)},
        # Pods start in parallel. They are still replaced one by one.
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": REVISIONS,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "template": template,
    }
    if storage is not None and (claims := volumes.claims(desired, component, storage)):
        spec["volumeClaimTemplates"] = claims
        spec["persistentVolumeClaimRetentionPolicy"] = retention
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(desired, name, component),
        "spec": spec,
    }


def retention(*, when_deleted: bool, when_scaled: bool) -> Object:
    """Return the retention policy of claims. True keeps them."""
    words = {True: "Retain", False: "Delete"}
    return {"whenDeleted": words[when_deleted], "whenScaled": words[when_scaled]}
