"""Volume expansion: a StatefulSet keeps its claim templates, but existing claims can grow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_kube.api.kinds import Object
from caraway_kube.resources import quantities


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
