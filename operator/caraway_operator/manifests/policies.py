"""NetworkPolicies: who may connect to the cluster's pods, and where they may connect to."""

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted

OPERATOR: Object = {
    "namespaceSelector": {},
    "podSelector": {
        "matchLabels": {naming.NAME_LABEL: "caraway", naming.COMPONENT_LABEL: "operator"}
    },
}
"""The operator asks schedulers for readiness, and to drain executors."""


def objects(wanted: Wanted) -> list[Object]:
    """Return the policies: of all pods, and of the ports that others may use."""
    if not wanted.spec.network.policies:
        return []
    return [_members(wanted), _clients(wanted), _metrics(wanted)]


def _members(wanted: Wanted) -> Object:
    """Pods of a cluster reach each other on every port: Ray chooses its own."""
    me: Object = {"podSelector": {"matchLabels": naming.members(wanted.name)}}
    spec: Object = {
        "podSelector": me["podSelector"],
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [me]}],
    }
    given = wanted.spec.network.egress
    if given is not None:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [{"to": [me]}, {"ports": _dns()}, *given]
    return _policy(wanted, wanted.name, spec)


def _clients(wanted: Wanted) -> Object:
    rule: Object = {"ports": [_port(naming.HTTP_PORT), _port(naming.FLIGHT_PORT)]}
    if wanted.spec.network.clients is not None:
        rule["from"] = list(wanted.spec.network.clients)
    selector = {"matchLabels": naming.selector(wanted.name, naming.SCHEDULER)}
    return _policy(
        wanted,
        naming.of(wanted.name, "clients"),
        {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": _rules(rule)},
    )


def _metrics(wanted: Wanted) -> Object:
    rule: Object = {"ports": [_port(naming.METRICS_PORT)]}
    if wanted.spec.network.metrics is not None:
        rule["from"] = [OPERATOR, *wanted.spec.network.metrics]
    selector: Object = {
        "matchLabels": naming.members(wanted.name),
        "matchExpressions": [
            {
                "key": naming.COMPONENT_LABEL,
                "operator": "In",
                "values": [naming.SCHEDULER, naming.EXECUTOR],
            }
        ],
    }
    return _policy(
        wanted,
        naming.of(wanted.name, "metrics"),
        {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": _rules(rule)},
    )


def _rules(rule: Object) -> list[Object]:
    # A rule with an empty `from` lets everybody in; nobody is meant.
    return [] if rule.get("from") == [] else [rule]


def _dns() -> list[Object]:
    return [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def _port(number: int) -> Object:
    return {"protocol": "TCP", "port": number}


def _policy(wanted: Wanted, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(wanted, name),
        "spec": spec,
    }
