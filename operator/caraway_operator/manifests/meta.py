"""Metadata of all objects: name, labels, annotations and owner."""

import hashlib
from collections.abc import Mapping
from typing import Any

from caraway_kube import naming
from caraway_operator.manifests.desired import DesiredCluster

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""


def metadata(
    desired: DesiredCluster,
    name: str,
    component: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return the metadata of an object of the cluster."""
    resource: Object = {
        "name": name,
        "namespace": desired.namespace,
        "labels": {**(labels or {}), **all_labels(desired, component)},
    }
    if annotations:
        resource["annotations"] = dict(annotations)
    if desired.uid:
        resource["ownerReferences"] = [owner(desired)]
    return resource


def all_labels(desired: DesiredCluster, component: str | None = None) -> dict[str, str]:
    """Return the labels of an object, or of the pods of a component."""
    mine = (
        naming.component_selector(desired.name, component)
        if component
        else naming.cluster_selector(desired.name)
    )
    return {
        **mine,
        naming.PART_OF_LABEL: "caraway",
        naming.MANAGED_BY_LABEL: desired.manager,
        naming.VERSION_LABEL: naming.label_value(version(desired)),
    }


def owner(desired: DesiredCluster) -> Object:
    """Return the owner reference, with which Kubernetes deletes the object after its cluster."""
    return {
        "apiVersion": naming.API_VERSION,
        "kind": naming.CLUSTER_KIND,
        "name": desired.name,
        "uid": desired.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def version(desired: DesiredCluster) -> str:
    """Return the version that the pods run."""
    image = desired.spec.image
    return image.tag or (image.digest or "").rpartition(":")[2][:12] or desired.version


def checksum(text: str) -> str:
    """Return a hash of the text, which reveals no secret."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def keyed(base: list[Object], more: tuple[Object, ...], key: str) -> list[Object]:
    """Add objects to a list that Kubernetes merges by a key. Equal keys are replaced."""
    merged = {each.get(key): each for each in base}
    merged.update({each.get(key): each for each in more})
    return list(merged.values())
