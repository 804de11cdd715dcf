"""The kinds of objects that the operator uses, and their API paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""An object as JSON. Any: its fields depend on its kind, and the API server checks them."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind. `is_optional` if a Kubernetes cluster may lack it."""

    api_version: str
    name: str
    plural: str
    is_optional: bool = False

    @property
    def group(self) -> str:
        """The API group; '' for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        """The API path of the group and version."""
        return (
            f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        )

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return the API path of an object, or of the list of objects."""
        parts = [self.root]
        if namespace is not None:
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """A reference to an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


CARAWAY = "caraway.dev/v1alpha1"
CLUSTER = ResourceKind(CARAWAY, "CarawayCluster", "carawayclusters")
LIMITS = ResourceKind(CARAWAY, "CarawayLimits", "carawaylimits")
CONFIG_MAP = ResourceKind("v1", "ConfigMap", "configmaps")
DEPLOYMENT = ResourceKind("apps/v1", "Deployment", "deployments")
EVENT = ResourceKind("events.k8s.io/v1", "Event", "events")
LEASE = ResourceKind("coordination.k8s.io/v1", "Lease", "leases")
NAMESPACE = ResourceKind("v1", "Namespace", "namespaces")
NETWORK_POLICY = ResourceKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
NODE = ResourceKind("v1", "Node", "nodes")
POD = ResourceKind("v1", "Pod", "pods")
POD_DISRUPTION_BUDGET = ResourceKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD_MONITOR = ResourceKind(
    "monitoring.coreos.com/v1", "PodMonitor", "podmonitors", is_optional=True
)
SECRET = ResourceKind("v1", "Secret", "secrets")
SERVICE = ResourceKind("v1", "Service", "services")
SERVICE_ACCOUNT = ResourceKind("v1", "ServiceAccount", "serviceaccounts")
SERVICE_MONITOR = ResourceKind(
    "monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", is_optional=True
)
STATEFUL_SET = ResourceKind("apps/v1", "StatefulSet", "statefulsets")
VOLUME_CLAIM = ResourceKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")

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
"""The kinds that the operator creates for a cluster, keeps in their desired state, and removes.

The operator also creates Secrets, but never deletes or lists them. It reads them by name.
"""
WATCHED = (*OWNED, POD, VOLUME_CLAIM)
KINDS: Mapping[str, ResourceKind] = {
    kind.name: kind for kind in (*WATCHED, CLUSTER, LIMITS, EVENT, LEASE, NAMESPACE, NODE, SECRET)
}


def ref(thing: Object) -> ObjectRef:
    """Return the reference to an object."""
    metadata = thing["metadata"]
    return ObjectRef(thing["kind"], metadata.get("namespace", ""), metadata["name"])
