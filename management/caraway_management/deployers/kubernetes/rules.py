"""The RBAC rules of the management service: the least privileges that its requests need.

The chart renders its role from `RULES`; a test compares them with the requests.
"""

from collections.abc import Sequence

from caraway_kube.rbac import Rule

RULES: Sequence[Rule] = (
    Rule("", ("namespaces",), ("create", "delete", "get", "patch")),
    Rule("caraway.dev", ("carawayclusters",), ("create", "get", "list", "patch", "watch")),
    Rule("caraway.dev", ("carawaylimits",), ("create", "patch")),
    Rule("", ("configmaps",), ("create", "patch")),
    # Secrets are written and never read.
    Rule("", ("secrets",), ("create", "patch")),
    Rule("", ("pods",), ("list",)),
    Rule("", ("pods/log",), ("get",)),
    Rule("", ("nodes",), ("list",)),
)
"""For all namespaces: each project gets one of its own, with a name that is not known before."""
