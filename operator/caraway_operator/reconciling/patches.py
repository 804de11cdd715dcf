"""Patches of objects that a new spec does not reach: sizes of claims, and annotations of pods.

A StatefulSet keeps its claim templates, but existing claims can grow. The kubelet writes changed
Secrets into the volumes of a pod about once a minute, and at once when an annotation of the pod
changes. Schedulers look at the files every two seconds.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_kube import naming
from caraway_kube.api.kinds import Object
from caraway_kube.resources import quantities
from caraway_operator.manifests import DesiredCluster, secrets


@dataclass(frozen=True, slots=True)
class VolumeExpansion:
    """A claim and its desired size."""

    claim: str
    size: str

    @property
    def patch(self) -> Object:
        """The merge patch for the claim."""
        return {"spec": {"resources": {"requests": {"storage": self.size}}}}


def expansions(desired: Iterable[Object], claims: Iterable[Object]) -> list[VolumeExpansion]:
    """Return the claims of StatefulSets that are smaller than desired."""
    sizes = dict(_sizes(desired))
    found = []
    for claim in claims:
        name = claim["metadata"]["name"]
        size = sizes.get(name.rpartition("-")[0])
        requested = _storage(claim.get("spec") or {})
        if not size or not requested or claim["metadata"].get("deletionTimestamp"):
            continue
        if quantities.number(size) > quantities.number(requested):
            found.append(VolumeExpansion(name, size))
    return found


def _sizes(desired: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for object_ in desired:
        if object_["kind"] != "StatefulSet":
            continue
        for template in object_["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{object_['metadata']['name']}"
            yield name, _storage(template["spec"])


def _storage(spec: Mapping[str, Any]) -> str:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", ""))


def refreshes(desired: DesiredCluster, pods: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the name and the patch of each scheduler pod whose API keys may be older."""
    seen = secrets.keys_checksum(desired)
    if seen is None:
        return
    for pod in pods:
        metadata = pod["metadata"]
        known = (metadata.get("annotations") or {}).get(naming.KEYS_CHECKSUM)
        if known != seen and not metadata.get("deletionTimestamp"):
            yield metadata["name"], {"metadata": {"annotations": {naming.KEYS_CHECKSUM: seen}}}
