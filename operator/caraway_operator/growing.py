"""Volumes that shall be larger: a StatefulSet keeps its size, but its claims can grow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_operator.kube.kinds import Object
from caraway_operator.resources import quantities


@dataclass(frozen=True, slots=True)
class Growth:
    """A claim, and the size that it shall have."""

    claim: str
    size: str

    @property
    def patch(self) -> Object:
        return {"spec": {"resources": {"requests": {"storage": self.size}}}}


def growths(wanted: Iterable[Object], claims: Iterable[Object]) -> list[Growth]:
    """Return the claims of StatefulSets that are smaller than they shall be."""
    sizes = dict(_sizes(wanted))
    found = []
    for claim in claims:
        name = claim["metadata"]["name"]
        size = sizes.get(name.rpartition("-")[0])
        asked = _storage(claim.get("spec") or {})
        if not size or not asked or claim["metadata"].get("deletionTimestamp"):
            continue
        if quantities.number(size) > quantities.number(asked):
            found.append(Growth(name, size))
    return found


def _sizes(wanted: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for object_ in wanted:
        if object_["kind"] != "StatefulSet":
            continue
        for template in object_["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{object_['metadata']['name']}"
            yield name, _storage(template["spec"])


def _storage(spec: Mapping[str, Any]) -> str:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", ""))
