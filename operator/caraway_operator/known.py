"""The clusters and limits that there are, and which limits are whose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caraway_operator.kube.kinds import Object
from caraway_operator.resources import parsing
from caraway_operator.resources.limits import UNLIMITED, LimitsSpec, ResourceLimits

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class Known:
    """What users wrote, as it was last seen."""

    clusters: dict[Key, Object] = field(default_factory=dict)
    limits: dict[Key, Object] = field(default_factory=dict)

    def put_cluster(self, cluster: Object) -> None:
        """Take a cluster as it is now; an older version than is known changes nothing."""
        known = self.clusters.get(key(cluster))
        if known is None or _version(known) <= _version(cluster):
            self.clusters[key(cluster)] = cluster

    def drop_cluster(self, cluster: Object) -> None:
        """Forget a cluster, unless another one has taken its name."""
        there = self.clusters.get(key(cluster))
        if there and there["metadata"]["uid"] == cluster["metadata"]["uid"]:
            del self.clusters[key(cluster)]

    def limits_of(self, namespace: str, organization: str | None) -> LimitsSpec | None:
        """Return the limits of a cluster: of all that apply, the lowest of each kind."""
        found = [
            parsed.spec
            for (where, _), object_ in sorted(self.limits.items())
            if where == namespace
            and (parsed := parsing.limits(object_.get("spec") or {})).spec is not None
            and parsed.spec.organization in (None, organization)
        ]
        return strictest(each for each in found if each is not None)

    def elder(self, cluster: Object) -> int:
        """Return how many clusters of the same organization, or namespace, came before this one."""
        mine, age = _household(cluster), _age(cluster)
        return sum(
            _household(other) == mine and _age(other) < age for other in self.clusters.values()
        )


def gone(
    held: Mapping[Key, Object], found: Iterable[Object], version: str, namespace: str | None
) -> list[Key]:
    """Return what is held, and is not in a listing of that version, which is younger than it is."""
    there = {key(object_) for object_ in found}
    newest = int(version) if version.isdigit() else 0
    return [
        which
        for which, object_ in held.items()
        if which not in there and namespace in (None, which[0]) and _version(object_) <= newest
    ]


def key(object_: Object) -> Key:
    """Return where an object is found."""
    return object_["metadata"]["namespace"], object_["metadata"]["name"]


def strictest(limits: Iterable[LimitsSpec]) -> LimitsSpec | None:
    """Return limits that keep to all that are given; None if there are none."""
    found: LimitsSpec | None = None
    for each in limits:
        found = each if found is None else _merged(found, each)
    return found


def _merged(one: LimitsSpec, other: LimitsSpec) -> LimitsSpec:
    counts = {
        name: _least(getattr(one, name), getattr(other, name))
        for name in LimitsSpec.model_fields
        if name not in ("organization", "resources")
    }
    resources = one.resources or other.resources
    if one.resources and other.resources:
        resources = ResourceLimits(
            max_cpu=_least(one.resources.max_cpu, other.resources.max_cpu),
            max_memory_gi=_least(one.resources.max_memory_gi, other.resources.max_memory_gi),
        )
    organization = one.organization or other.organization
    return one.model_copy(update={**counts, "resources": resources, "organization": organization})


def _least(one: int | None, other: int | None) -> int | None:
    bounded = [each for each in (one, other) if each is not None and each != UNLIMITED]
    return min(bounded) if bounded else one


def _household(cluster: Object) -> tuple[str, str]:
    spec: Mapping[str, Any] = cluster.get("spec") or {}
    return cluster["metadata"]["namespace"], str(spec.get("organization") or "")


def _age(cluster: Object) -> tuple[str, str]:
    metadata = cluster["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["name"]


def _version(object_: Object) -> int:
    text = str(object_["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
