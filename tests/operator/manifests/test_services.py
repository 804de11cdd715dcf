import itertools
from typing import Any

from caraway_operator.manifests import objects
from tests.operator.manifests.clusters import EVERYTHING, desired, made


def ports(service: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["port"] for port in service["spec"]["ports"]}


def test_the_service_with_the_clusters_name_selects_the_schedulers() -> None:
    sections = {"service": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}
    service = made(desired(sections), "Service", "demo")
    assert ports(service) == {"http": 8090, "flight": 50051, "metrics": 9090}
    assert service["spec"]["type"] == "ClusterIP" and "clusterIP" not in service["spec"]
    assert service["metadata"]["annotations"] == {"a": "b"}
    assert service["metadata"]["labels"]["c"] == "d"


def test_the_public_service_has_no_metrics_port() -> None:
    cluster = desired(EVERYTHING)
    public = made(cluster, "Service", "demo-public")
    assert ports(public) == {"http": 8090, "flight": 50051}
    assert public["metadata"]["annotations"] == {"lb": "internal"}
    spec = public["spec"]
    assert {key: spec[key] for key in spec if key not in ("ports", "selector")} == {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "cloud",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
    }
    inner = made(cluster, "Service", "demo")
    assert inner["spec"]["type"] == "ClusterIP" and "annotations" not in inner["metadata"]


def test_head_and_state_have_addresses_and_executors_are_headless() -> None:
    cluster = desired()
    head = made(cluster, "Service", "demo-head")["spec"]
    assert "clusterIP" not in head and head["publishNotReadyAddresses"]
    state = made(cluster, "Service", "demo-state")
    assert ports(state) == {"redis": 6379, "store": 8095}
    assert "clusterIP" not in state["spec"] and state["spec"]["publishNotReadyAddresses"]
    assert made(cluster, "Service", "demo-executor")["spec"]["clusterIP"] == "None"


def test_the_state_has_the_ports_of_its_containers() -> None:
    cluster = desired({"redis": {"url": "redis://shared"}})
    assert ports(made(cluster, "Service", "demo-state")) == {"store": 8095}


def test_executors_have_services_of_their_own_where_clients_read_at_them() -> None:
    flight = {"enabled": True, "serviceType": "NodePort", "serviceAnnotations": {"a": "b"}}
    cluster = desired({"executor": {"replicas": 2, "flight": flight}})
    for name in ("demo-executor-0", "demo-executor-1"):
        service = made(cluster, "Service", name)
        assert service["spec"]["type"] == "NodePort"
        assert service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == name
        assert service["metadata"]["annotations"] == {"a": "b"}
        assert ports(service) == {"flight": 50051}
    named = [each["metadata"]["name"] for each in objects(cluster) if each["kind"] == "Service"]
    assert "demo-executor-2" not in named
    without = desired({"executor": {"flight": {"enabled": True}}})
    named = [each["metadata"]["name"] for each in objects(without) if each["kind"] == "Service"]
    assert "demo-executor-0" not in named


def test_executors_that_serve_flight_say_where_and_use_the_certificate() -> None:
    cluster = desired({"tls": {"enabled": True}, "executor": {"flight": {"enabled": True}}})
    pod = made(cluster, "StatefulSet", "demo-executor")["spec"]["template"]["spec"]
    flags = pod["containers"][0]["args"]
    given = dict(itertools.pairwise(flags))
    assert given["--flight"] == "0.0.0.0:50051"
    assert given["--flight-advertised"].startswith("$(POD_NAME).demo-executor.")
    assert given["--flight-certificate"] == "/etc/caraway/tls/tls.crt"
    assert "tls" in [each["name"] for each in pod["volumes"]]
    policy = made(cluster, "NetworkPolicy", "demo-executor-clients")["spec"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 50051}]}]
    config = made(cluster, "ConfigMap", "demo-manifest")["data"]["caraway.yaml"]
    assert "parallel_reads" in config
