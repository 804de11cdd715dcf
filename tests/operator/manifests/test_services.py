from typing import Any

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
