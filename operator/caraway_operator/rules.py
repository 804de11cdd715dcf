"""What the operator may do in Kubernetes: the least that its requests need, as RBAC rules.

The chart renders its role from `RULES`, and a test compares both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_WRITE = ("create", "delete", "get", "list", "update", "watch")


@dataclass(frozen=True, slots=True)
class Rule:
    """What may be done with some resources of an API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    @property
    def rendered(self) -> dict[str, Any]:
        return {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }


RULES: Sequence[Rule] = (
    Rule("caraway.dev", ("carawayclusters", "carawaylimits"), ("list", "watch")),
    Rule("caraway.dev", ("carawayclusters/status",), ("patch",)),
    # An owner whose deletion is blocked by what it owns: some clusters check this right.
    Rule("caraway.dev", ("carawayclusters/finalizers",), ("update",)),
    Rule("", ("configmaps", "services", "serviceaccounts"), _WRITE),
    # Secrets are read by name: no list, and none is ever removed.
    Rule("", ("secrets",), ("create", "get", "update")),
    Rule("", ("pods",), ("delete", "list", "watch")),
    Rule("", ("persistentvolumeclaims",), ("list", "patch", "watch")),
    Rule("apps", ("deployments", "statefulsets"), _WRITE),
    Rule("networking.k8s.io", ("networkpolicies",), _WRITE),
    Rule("policy", ("poddisruptionbudgets",), _WRITE),
    Rule("monitoring.coreos.com", ("podmonitors", "servicemonitors"), _WRITE),
    Rule("events.k8s.io", ("events",), ("create",)),
)
"""In every namespace that the operator looks after: a ClusterRole, or a Role in each."""

OWN_RULES: Sequence[Rule] = (Rule("coordination.k8s.io", ("leases",), ("create", "get", "patch")),)
"""In the operator's own namespace, where its Lease is."""


def rendered(rules: Sequence[Rule] = RULES) -> list[dict[str, Any]]:
    """Return the rules as a Role has them."""
    return [rule.rendered for rule in rules]
