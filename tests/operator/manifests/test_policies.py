"""Network policies, disruption budgets, accounts and monitors."""

from caraway_operator.manifests import objects
from tests.operator.manifests.clusters import EVERYTHING, made, wanted

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


def test_pods_reach_each_other_on_every_port_and_the_world() -> None:
    assert made(wanted(), "NetworkPolicy", "demo")["spec"] == {
        **PODS,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [PODS]}],
    }


def test_anyone_is_a_client_and_may_read_metrics() -> None:
    clients = made(wanted(), "NetworkPolicy", "demo-clients")["spec"]
    assert clients["ingress"] == [{"ports": CLIENT_PORTS}]
    assert clients["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "scheduler"
    metrics = made(wanted(), "NetworkPolicy", "demo-metrics")["spec"]
    assert metrics["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9090}]}]
    [expression] = metrics["podSelector"]["matchExpressions"]
    assert expression["values"] == ["scheduler", "executor"]


def test_where_somebody_is_named_the_others_are_not_let_in() -> None:
    cluster = wanted(EVERYTHING)
    clients = made(cluster, "NetworkPolicy", "demo-clients")["spec"]
    assert clients["ingress"] == [{"ports": CLIENT_PORTS, "from": EVERYTHING["network"]["clients"]}]
    metrics = made(cluster, "NetworkPolicy", "demo-metrics")["spec"]
    # The operator asks for readiness on that port.
    assert metrics["ingress"][0]["from"] == [OPERATOR, *EVERYTHING["network"]["metrics"]]


def test_an_empty_list_is_nobody() -> None:
    cluster = wanted({"network": {"clients": []}})
    assert made(cluster, "NetworkPolicy", "demo-clients")["spec"]["ingress"] == []


def test_with_egress_rules_pods_reach_each_other_names_and_what_is_allowed() -> None:
    spec = made(wanted(EVERYTHING), "NetworkPolicy", "demo")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["egress"] == [
        {"to": [PODS]},
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        *EVERYTHING["network"]["egress"],
    ]


def test_policies_can_be_left_out() -> None:
    kinds = {each["kind"] for each in objects(wanted({"network": {"policies": False}}))}
    assert "NetworkPolicy" not in kinds


def test_a_node_that_drains_takes_one_executor_and_never_the_last_scheduler() -> None:
    cluster = wanted(EVERYTHING)
    executor = made(cluster, "PodDisruptionBudget", "demo-executor")["spec"]
    assert executor["maxUnavailable"] == 1
    scheduler = made(cluster, "PodDisruptionBudget", "demo-scheduler")["spec"]
    assert scheduler["minAvailable"] == 1


def test_what_is_alone_does_not_block_its_node() -> None:
    kinds = {each["kind"] for each in objects(wanted({"executor": {"replicas": 1}}))}
    assert "PodDisruptionBudget" not in kinds


def test_accounts_have_no_token() -> None:
    cluster = wanted(EVERYTHING)
    account = made(cluster, "ServiceAccount", "demo")
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["annotations"] == {"role": "reader"}
    assert made(cluster, "ServiceAccount", "demo-system")["automountServiceAccountToken"] is False


def test_accounts_that_are_there_are_used() -> None:
    given = wanted({"serviceAccount": {"create": False, "name": "mine"}})
    pods = made(given, "StatefulSet", "demo-executor")["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == "mine"
    none = wanted({"serviceAccount": {"create": False}})
    pods = made(none, "StatefulSet", "demo-executor")["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == "default"


def test_monitors_are_made_where_their_kind_exists_and_they_are_asked_for() -> None:
    kinds = frozenset({"ServiceMonitor", "PodMonitor"})
    both = wanted(EVERYTHING, kinds=kinds)
    monitor = made(both, "ServiceMonitor", "demo-scheduler")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [
        {"port": "metrics", "path": "/metrics", "interval": "10s"}
    ]
    assert "podMetricsEndpoints" in made(both, "PodMonitor", "demo-executor")["spec"]
    for cluster in (wanted(EVERYTHING), wanted(kinds=kinds)):
        assert not kinds & {each["kind"] for each in objects(cluster)}
