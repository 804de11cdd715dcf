"""NetworkPolicies: ingress to the cluster's pods, and their egress."""

from collections.abc import Sequence

from caraway_kube import naming
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

OPERATOR: Object = {
    "namespaceSelector": {},
    "podSelector": {
        "matchLabels": {naming.NAME_LABEL: "caraway", naming.COMPONENT_LABEL: "operator"}
    },
}
"""The operator, which asks schedulers for their readiness and to drain executors."""


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the policies for all pods, for clients and for metrics."""
    if not desired.spec.network.policies:
        return []
    return [_members(desired), _clients(desired), _metrics(desired), *_flight(desired)]


def _members(desired: DesiredCluster) -> Object:
    """Allow all ports between pods of the cluster, because Ray chooses its ports."""
    me: Object = {"podSelector": {"matchLabels": naming.cluster_selector(desired.name)}}
    spec: Object = {
        "podSelector": me["podSelector"],
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [me]}],
    }
    given = desired.spec.network.egress
    if given is not None:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [{"to": [me]}, {"ports": _dns()}, *given]
    return _policy(desired, desired.name, spec)


def _clients(desired: DesiredCluster) -> Object:
    ports = [naming.HTTP_PORT, naming.FLIGHT_PORT]
    return _for_clients(
        desired, naming.object_name(desired.name, "clients"), naming.SCHEDULER, ports
    )


def _flight(desired: DesiredCluster) -> list[Object]:
    if not desired.spec.executor.flight.enabled:
        return []
    name = naming.object_name(desired.name, "executor-clients")
    return [_for_clients(desired, name, naming.EXECUTOR, [naming.FLIGHT_PORT])]


def _for_clients(
    desired: DesiredCluster, name: str, component: str, ports: Sequence[int]
) -> Object:
    rule: Object = {"ports": [_port(each) for each in ports]}
    if desired.spec.network.clients is not None:
        rule["from"] = list(desired.spec.network.clients)
    selector = {"matchLabels": naming.component_selector(desired.name, component)}
    return _policy(
        desired,
        name,
        {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": _rules(rule)},
    )


def _metrics(desired: DesiredCluster) -> Object:
    rule: Object = {"ports": [_port(naming.METRICS_PORT)]}
    if desired.spec.network.metrics is not None:
        rule["from"] = [OPERATOR, *desired.spec.network.metrics]
    selector: Object = {
        "matchLabels": naming.cluster_selector(desired.name),
        "matchExpressions": [
            {
                "key": naming.COMPONENT_LABEL,
                "operator": "In",
                "values": [naming.SCHEDULER, naming.EXECUTOR],
            }
        ],
    }
    return _policy(
        desired,
        naming.object_name(desired.name, "metrics"),
        {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": _rules(rule)},
    )


def _rules(rule: Object) -> list[Object]:
    # An empty `from` would allow all peers, but here it means none.
    return [] if rule.get("from") == [] else [rule]


def _dns() -> list[Object]:
    return [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def _port(number: int) -> Object:
    return {"protocol": "TCP", "port": number}


def _policy(desired: DesiredCluster, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(desired, name),
        "spec": spec,
    }
