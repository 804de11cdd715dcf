"""The CarawayClusters and CarawayLimits as last seen, and which limits apply to which cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from caraway_kube.api.kinds import Object
from caraway_kube.resources import parsing
from caraway_kube.resources.limits import UNLIMITED, CarawayLimitsSpec, ResourceLimits

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class ResourceCache:
    """The custom resources of users."""

    clusters: dict[Key, Object] = field(default_factory=dict)
    limits: dict[Key, Object] = field(default_factory=dict)

    def put_cluster(self, cluster: Object) -> None:
        """Store a cluster, unless a newer version of it is stored already."""
        resource = self.clusters.get(key(cluster))
        if resource is None or _version(resource) <= _version(cluster):
            self.clusters[key(cluster)] = cluster

    def drop_cluster(self, cluster: Object) -> None:
        """Remove a cluster, unless another one has its name now."""
        resource = self.clusters.get(key(cluster))
        if resource and resource["metadata"]["uid"] == cluster["metadata"]["uid"]:
            del self.clusters[key(cluster)]

    def limits_of(self, namespace: str, organization: str | None) -> CarawayLimitsSpec | None:
        """Return the limits of a cluster: the lowest of all that apply."""
        specs = [
            parsed.spec
            for (where, _), object_ in sorted(self.limits.items())
            if where == namespace
            and (parsed := parsing.limits(object_.get("spec") or {})).spec is not None
            and parsed.spec.organization in (None, organization)
        ]
        return strictest_limits(each for each in specs if each is not None)

    def older_clusters(self, cluster: Object) -> int:
        """Return how many clusters of the same organization and namespace are older."""
        mine, age = _tenant(cluster), _age(cluster)
        return sum(_tenant(other) == mine and _age(other) < age for other in self.clusters.values())


def deleted_keys(
    known: Mapping[Key, Object], listed: Iterable[Object], version: str, namespace: str | None
) -> list[Key]:
    """Return the known objects that are older than a list of that version and not in it."""
    live = {key(object_) for object_ in listed}
    newest = int(version) if version.isdigit() else 0
    return [
        which
        for which, object_ in known.items()
        if which not in live and namespace in (None, which[0]) and _version(object_) <= newest
    ]


def key(object_: Object) -> Key:
    """Return the namespace and the name of an object."""
    return object_["metadata"]["namespace"], object_["metadata"]["name"]


def strictest_limits(limits: Iterable[CarawayLimitsSpec]) -> CarawayLimitsSpec | None:
    """Return limits that satisfy all the given ones, or None if there are none."""
    merged: CarawayLimitsSpec | None = None
    for each in limits:
        merged = each if merged is None else _merged(merged, each)
    return merged


def _merged(one: CarawayLimitsSpec, other: CarawayLimitsSpec) -> CarawayLimitsSpec:
    counts = {
        name: _least(getattr(one, name), getattr(other, name))
        for name in CarawayLimitsSpec.model_fields
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


def _tenant(cluster: Object) -> tuple[str, str]:
    spec: Mapping[str, object] = cluster.get("spec") or {}
    return cluster["metadata"]["namespace"], str(spec.get("organization") or "")


def _age(cluster: Object) -> tuple[str, str]:
    metadata = cluster["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["name"]


def _version(object_: Object) -> int:
    text = str(object_["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
