"""The kinds of objects that the operator touches, and where the API keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""An object as JSON has it. Any: its shape is that of its kind, which the API checks."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; `is_optional` if a cluster may do without it."""

    api_version: str
    name: str
    plural: str
    is_optional: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        return (
            f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        )

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return where the object, or the list of them, is found."""
        parts = [self.root]
        if namespace is not None:
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Which object is meant."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


CARAWAY = "caraway.dev/v1alpha1"
CLUSTER = Kind(CARAWAY, "CarawayCluster", "carawayclusters")
LIMITS = Kind(CARAWAY, "CarawayLimits", "carawaylimits")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
EVENT = Kind("events.k8s.io/v1", "Event", "events")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
POD = Kind("v1", "Pod", "pods")
POD_DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD_MONITOR = Kind("monitoring.coreos.com/v1", "PodMonitor", "podmonitors", is_optional=True)
SECRET = Kind("v1", "Secret", "secrets")
SERVICE = Kind("v1", "Service", "services")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SERVICE_MONITOR = Kind(
    "monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", is_optional=True
)
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
VOLUME_CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")

OWNED = (
    CONFIG_MAP,
    DEPLOYMENT,
    NETWORK_POLICY,
    POD_DISRUPTION_BUDGET,
    POD_MONITOR,
    SERVICE,
    SERVICE_ACCOUNT,
    SERVICE_MONITOR,
    STATEFUL_SET,
)
"""What is made for a cluster, kept as it should be, and removed when it is no longer wanted.

Secrets are made too, but none is ever written again or removed, and none is listed: the operator
reads those that it knows by name.
"""
WATCHED = (*OWNED, POD, VOLUME_CLAIM)
KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (*WATCHED, CLUSTER, LIMITS, EVENT, LEASE, SECRET)
}


def ref(thing: Object) -> Ref:
    """Return which object this is."""
    metadata = thing["metadata"]
    return Ref(thing["kind"], metadata.get("namespace", ""), metadata["name"])
