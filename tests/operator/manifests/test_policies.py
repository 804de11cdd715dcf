"""Network policies, disruption budgets, accounts and monitors."""

from caraway_operator.manifests import objects
from tests.operator.manifests.clusters import EVERYTHING, desired, made

PODS = {
    "podSelector": {
        "matchLabels": {
            "app.kubernetes.io/name": "caraway",
            "app.kubernetes.io/instance": "demo",
        }
    }
}
OPERATOR = {
    "namespaceSelector": {},
    "podSelector": {
        "matchLabels": {
            "app.kubernetes.io/name": "caraway",
            "app.kubernetes.io/component": "operator",
        }
    },
}
CLIENT_PORTS = [{"protocol": "TCP", "port": 8090}, {"protocol": "TCP", "port": 50051}]


def test_pods_reach_each_other_and_any_destination() -> None:
    assert made(desired(), "NetworkPolicy", "demo")["spec"] == {
        **PODS,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [PODS]}],
    }


def test_by_default_anyone_may_use_clients_ports_and_metrics() -> None:
    clients = made(desired(), "NetworkPolicy", "demo-clients")["spec"]
    assert clients["ingress"] == [{"ports": CLIENT_PORTS}]
    assert clients["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "scheduler"
    metrics = made(desired(), "NetworkPolicy", "demo-metrics")["spec"]
    assert metrics["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9090}]}]
    [expression] = metrics["podSelector"]["matchExpressions"]
    assert expression["values"] == ["scheduler", "executor"]


def test_given_peers_exclude_all_others() -> None:
    cluster = desired(EVERYTHING)
    clients = made(cluster, "NetworkPolicy", "demo-clients")["spec"]
    assert clients["ingress"] == [{"ports": CLIENT_PORTS, "from": EVERYTHING["network"]["clients"]}]
    metrics = made(cluster, "NetworkPolicy", "demo-metrics")["spec"]
    # The operator uses this port to check readiness.
    assert metrics["ingress"][0]["from"] == [OPERATOR, *EVERYTHING["network"]["metrics"]]


def test_an_empty_list_of_peers_allows_nobody() -> None:
    cluster = desired({"network": {"clients": []}})
    assert made(cluster, "NetworkPolicy", "demo-clients")["spec"]["ingress"] == []


def test_egress_rules_add_to_the_cluster_and_dns() -> None:
    spec = made(desired(EVERYTHING), "NetworkPolicy", "demo")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["egress"] == [
        {"to": [PODS]},
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        *EVERYTHING["network"]["egress"],
    ]


def test_policies_can_be_disabled() -> None:
    kinds = {each["kind"] for each in objects(desired({"network": {"policies": False}}))}
    assert "NetworkPolicy" not in kinds


def test_budgets_allow_one_executor_and_keep_one_scheduler() -> None:
    cluster = desired(EVERYTHING)
    executor = made(cluster, "PodDisruptionBudget", "demo-executor")["spec"]
    assert executor["maxUnavailable"] == 1
    scheduler = made(cluster, "PodDisruptionBudget", "demo-scheduler")["spec"]
    assert scheduler["minAvailable"] == 1


def test_a_single_pod_has_no_budget() -> None:
    kinds = {each["kind"] for each in objects(desired({"executor": {"replicas": 1}}))}
    assert "PodDisruptionBudget" not in kinds


def test_accounts_have_no_token() -> None:
    cluster = desired(EVERYTHING)
    account = made(cluster, "ServiceAccount", "demo")
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["annotations"] == {"role": "reader"}
    assert made(cluster, "ServiceAccount", "demo-system")["automountServiceAccountToken"] is False


def test_existing_accounts_are_used() -> None:
    given = desired({"serviceAccount": {"create": False, "name": "mine"}})
    pods = made(given, "StatefulSet", "demo-executor")["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == "mine"
    none = desired({"serviceAccount": {"create": False}})
    pods = made(none, "StatefulSet", "demo-executor")["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == "default"


def test_monitors_are_created_if_enabled_and_if_their_kind_exists() -> None:
    kinds = frozenset({"ServiceMonitor", "PodMonitor"})
    both = desired(EVERYTHING, kinds=kinds)
    monitor = made(both, "ServiceMonitor", "demo-scheduler")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [
        {"port": "metrics", "path": "/metrics", "interval": "10s"}
    ]
    assert "podMetricsEndpoints" in made(both, "PodMonitor", "demo-executor")["spec"]
    for cluster in (desired(EVERYTHING), desired(kinds=kinds)):
        assert not kinds & {each["kind"] for each in objects(cluster)}
