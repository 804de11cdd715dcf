"""Which fields of a live object an update keeps, and which changes are edits."""

from typing import Any

from caraway_kube.api.kinds import Object
from caraway_operator.kube import merging


def service(kind: str = "ClusterIP", **spec: Any) -> Object:
    ports = [{"name": "http", "port": 8090, "protocol": "TCP"}]
    annotations = {"mine": "1"}
    metadata: Object = {"name": "shop", "annotations": annotations, "labels": {"app": "caraway"}}
    annotations[merging.KEYS] = merging.keys(metadata)
    return {
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": kind, "ports": ports, **spec},
    }


def live(of: Object, **spec: Any) -> Object:
    metadata = {**of["metadata"], "uid": "u-1", "resourceVersion": "7"}
    return {**of, "metadata": metadata, "spec": {**of["spec"], **spec}}


def stateful_set(size: str, storage_class: str = "fast") -> Object:
    spec = {"resources": {"requests": {"storage": size}}, "storageClassName": storage_class}
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    return {"kind": "StatefulSet", "spec": {"volumeClaimTemplates": templates}}


def test_foreign_labels_are_kept_and_dropped_ones_are_removed() -> None:
    there = live(service())
    there["metadata"]["labels"] = {"app": "caraway", "team": "web"}
    there["metadata"]["annotations"] = {**there["metadata"]["annotations"], "theirs": "2"}
    desired = service()
    del desired["metadata"]["annotations"]["mine"]

    found = merging.merged(desired, there)["metadata"]

    assert found["labels"] == {"app": "caraway", "team": "web"}
    assert found["annotations"].keys() == {"theirs", merging.KEYS}
    assert (found["uid"], found["resourceVersion"]) == ("u-1", "7")


def test_a_malformed_keys_annotation_removes_no_foreign_labels() -> None:
    there = live(service())
    there["metadata"]["annotations"] = {merging.KEYS: "[1]", "theirs": "2"}

    assert merging.merged(service(), there)["metadata"]["annotations"]["theirs"] == "2"


def test_foreign_finalizers_and_owners_are_kept() -> None:
    there = live(service())
    there["metadata"] |= {"finalizers": ["x/y"], "ownerReferences": [{"uid": "a"}, {"uid": "b"}]}
    desired = service()
    desired["metadata"]["ownerReferences"] = [{"uid": "a", "controller": True}]

    found = merging.merged(desired, there)["metadata"]

    assert found["finalizers"] == ["x/y"]
    assert found["ownerReferences"] == [{"uid": "a", "controller": True}, {"uid": "b"}]


def test_addresses_and_node_ports_are_kept() -> None:
    ports = [{"name": "edited", "port": 8090, "protocol": "TCP", "nodePort": 30001}]
    spec = {"clusterIP": "10.0.0.1", "loadBalancerClass": "cloud", "externalIPs": ["192.0.2.1"]}
    there = live(service("LoadBalancer"), ports=ports, **spec)

    found = merging.merged(service("LoadBalancer"), there)["spec"]

    assert found["ports"] == [{"name": "http", "port": 8090, "protocol": "TCP", "nodePort": 30001}]
    assert (found["clusterIP"], found["loadBalancerClass"]) == ("10.0.0.1", "cloud")
    assert "externalIPs" not in found
    assert "nodePort" not in merging.merged(service(), there)["spec"]["ports"][0]


def test_a_restart_by_kubectl_is_kept_and_is_no_edit() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    desired = {"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"template": template}}
    there = live(desired)
    restarted = {"labels": {"a": "b"}, "annotations": {merging.RESTARTED: "now"}}
    there["spec"] = {"template": {"metadata": restarted, "spec": {}}}

    found = merging.merged(desired, there)

    assert found["spec"]["template"]["metadata"] == restarted
    assert merging.essence(there, desired) == merging.essence(live(desired), desired)
    restarted["annotations"] = {merging.RESTARTED: "now", "injected": "yes"}
    assert merging.essence(there, desired) != merging.essence(live(desired), desired)


def test_pull_secrets_that_a_platform_adds_to_an_account_are_kept() -> None:
    desired = {"kind": "ServiceAccount", "metadata": {"name": "x"}}
    there = live({**desired, "spec": {}}) | {"imagePullSecrets": [{"name": "pull"}]}

    assert merging.merged(desired, there)["imagePullSecrets"] == [{"name": "pull"}]


def test_a_service_with_an_address_is_recreated_to_become_headless() -> None:
    headless = service(clusterIP="None")

    assert merging.must_recreate(headless, live(service(), clusterIP="10.0.0.1"))
    assert merging.must_recreate(service(), live(service(), clusterIP="None"))
    assert not merging.must_recreate(service(), live(service(), clusterIP="10.0.0.1"))
    assert not merging.must_recreate(service(), live(service("ExternalName")))


def test_only_the_sizes_of_claim_templates_are_kept() -> None:
    there = stateful_set("10Gi")
    there["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}

    kept = merging.settled(stateful_set("20Gi"), there)
    other = merging.settled(stateful_set("20Gi", "slow"), there)

    assert kept == stateful_set("10Gi")
    assert other == stateful_set("20Gi", "slow")
