"""The RBAC rules of the operator: the least privileges that its requests need.

The chart renders its role from `RULES`; a test compares both.
"""

from collections.abc import Sequence

from caraway_kube.rbac import Rule

_WRITE = ("create", "delete", "get", "list", "update", "watch")

RULES: Sequence[Rule] = (
    Rule("caraway.dev", ("carawayclusters", "carawaylimits"), ("list", "watch")),
    Rule("caraway.dev", ("carawayclusters/status",), ("patch",)),
    # Needed for blockOwnerDeletion where the admission plugin OwnerReferencesPermission is on.
    Rule("caraway.dev", ("carawayclusters/finalizers",), ("update",)),
    Rule("", ("configmaps", "services", "serviceaccounts"), _WRITE),
    # Secrets are read by name, never listed and never deleted.
    Rule("", ("secrets",), ("create", "get", "update")),
    # Annotations of pods, so that the kubelet gives them changed API keys.
    Rule("", ("pods",), ("delete", "list", "patch", "watch")),
    Rule("", ("persistentvolumeclaims",), ("list", "patch", "watch")),
    Rule("apps", ("deployments", "statefulsets"), _WRITE),
    Rule("networking.k8s.io", ("networkpolicies",), _WRITE),
    Rule("policy", ("poddisruptionbudgets",), _WRITE),
    Rule("monitoring.coreos.com", ("podmonitors", "servicemonitors"), _WRITE),
    Rule("events.k8s.io", ("events",), ("create",)),
)
"""For every managed namespace: a ClusterRole, or a Role in each namespace."""

OWN_RULES: Sequence[Rule] = (Rule("coordination.k8s.io", ("leases",), ("create", "get", "patch")),)
"""For the operator's own namespace, which contains its Lease."""
