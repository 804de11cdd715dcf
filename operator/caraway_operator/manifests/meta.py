"""Names, labels and owners: what every object begins with."""

import hashlib
from collections.abc import Mapping
from typing import Any

from caraway_operator import naming
from caraway_operator.manifests.wanted import Wanted

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON has it."""


def metadata(
    wanted: Wanted,
    name: str,
    component: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return the metadata of an object of the cluster."""
    made: Object = {
        "name": name,
        "namespace": wanted.namespace,
        "labels": {**(labels or {}), **all_labels(wanted, component)},
    }
    if annotations:
        made["annotations"] = dict(annotations)
    if wanted.uid:
        made["ownerReferences"] = [owner(wanted)]
    return made


def all_labels(wanted: Wanted, component: str | None = None) -> dict[str, str]:
    """Return the labels of an object, or of the pods of a component."""
    mine = naming.selector(wanted.name, component) if component else naming.members(wanted.name)
    return {
        **mine,
        naming.PART_OF_LABEL: "caraway",
        naming.MANAGED_BY_LABEL: wanted.manager,
        naming.VERSION_LABEL: naming.label_value(version(wanted)),
    }


def owner(wanted: Wanted) -> Object:
    """Return the reference by which an object goes with its cluster."""
    return {
        "apiVersion": naming.API_VERSION,
        "kind": naming.CLUSTER_KIND,
        "name": wanted.name,
        "uid": wanted.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def version(wanted: Wanted) -> str:
    """Return the version that the pods run."""
    image = wanted.spec.image
    return image.tag or (image.digest or "").rpartition(":")[2][:12] or wanted.version


def checksum(text: str) -> str:
    """Return what differs when the text does; no secret can be read out of it."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def keyed(base: list[Object], more: tuple[Object, ...], key: str) -> list[Object]:
    """Add objects to a list that Kubernetes keeps by a key; those of the same key are replaced."""
    merged = {each.get(key): each for each in base}
    merged.update({each.get(key): each for each in more})
    return list(merged.values())
