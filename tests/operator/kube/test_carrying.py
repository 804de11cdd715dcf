"""What stays of a live object when it is written, and what counts as an edit."""

from typing import Any

from caraway_operator.kube import carrying
from caraway_operator.kube.kinds import Object


def service(kind: str = "ClusterIP", **spec: Any) -> Object:
    ports = [{"name": "http", "port": 8090, "protocol": "TCP"}]
    annotations = {"mine": "1"}
    metadata: Object = {"name": "shop", "annotations": annotations, "labels": {"app": "caraway"}}
    annotations[carrying.KEYS] = carrying.keys(metadata)
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


def test_labels_of_others_stay_and_those_that_we_dropped_go() -> None:
    there = live(service())
    there["metadata"]["labels"] = {"app": "caraway", "team": "web"}
    there["metadata"]["annotations"] = {**there["metadata"]["annotations"], "theirs": "2"}
    wanted = service()
    del wanted["metadata"]["annotations"]["mine"]

    found = carrying.merged(wanted, there)["metadata"]

    assert found["labels"] == {"app": "caraway", "team": "web"}
    assert found["annotations"].keys() == {"theirs", carrying.KEYS}
    assert (found["uid"], found["resourceVersion"]) == ("u-1", "7")


def test_an_annotation_of_keys_that_makes_no_sense_removes_nothing_of_others() -> None:
    there = live(service())
    there["metadata"]["annotations"] = {carrying.KEYS: "[1]", "theirs": "2"}

    assert carrying.merged(service(), there)["metadata"]["annotations"]["theirs"] == "2"


def test_finalizers_and_owners_of_others_stay() -> None:
    there = live(service())
    there["metadata"] |= {"finalizers": ["x/y"], "ownerReferences": [{"uid": "a"}, {"uid": "b"}]}
    wanted = service()
    wanted["metadata"]["ownerReferences"] = [{"uid": "a", "controller": True}]

    found = carrying.merged(wanted, there)["metadata"]

    assert found["finalizers"] == ["x/y"]
    assert found["ownerReferences"] == [{"uid": "a", "controller": True}, {"uid": "b"}]


def test_addresses_and_node_ports_stay() -> None:
    ports = [{"name": "edited", "port": 8090, "protocol": "TCP", "nodePort": 30001}]
    spec = {"clusterIP": "10.0.0.1", "loadBalancerClass": "cloud", "externalIPs": ["192.0.2.1"]}
    there = live(service("LoadBalancer"), ports=ports, **spec)

    found = carrying.merged(service("LoadBalancer"), there)["spec"]

    assert found["ports"] == [{"name": "http", "port": 8090, "protocol": "TCP", "nodePort": 30001}]
    assert (found["clusterIP"], found["loadBalancerClass"]) == ("10.0.0.1", "cloud")
    assert "externalIPs" not in found
    assert "nodePort" not in carrying.merged(service(), there)["spec"]["ports"][0]


def test_a_restart_by_kubectl_stays_and_is_no_edit() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    wanted = {"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"template": template}}
    there = live(wanted)
    restarted = {"labels": {"a": "b"}, "annotations": {carrying.RESTARTED: "now"}}
    there["spec"] = {"template": {"metadata": restarted, "spec": {}}}

    found = carrying.merged(wanted, there)

    assert found["spec"]["template"]["metadata"] == restarted
    assert carrying.essence(there, wanted) == carrying.essence(live(wanted), wanted)
    restarted["annotations"] = {carrying.RESTARTED: "now", "injected": "yes"}
    assert carrying.essence(there, wanted) != carrying.essence(live(wanted), wanted)


def test_pull_secrets_that_a_platform_gives_an_account_stay() -> None:
    wanted = {"kind": "ServiceAccount", "metadata": {"name": "x"}}
    there = live({**wanted, "spec": {}}) | {"imagePullSecrets": [{"name": "pull"}]}

    assert carrying.merged(wanted, there)["imagePullSecrets"] == [{"name": "pull"}]


def test_a_service_with_an_address_is_made_again_to_lose_it() -> None:
    headless = service(clusterIP="None")

    assert carrying.must_be_remade(headless, live(service(), clusterIP="10.0.0.1"))
    assert carrying.must_be_remade(service(), live(service(), clusterIP="None"))
    assert not carrying.must_be_remade(service(), live(service(), clusterIP="10.0.0.1"))
    assert not carrying.must_be_remade(service(), live(service("ExternalName")))


def test_sizes_of_claims_stay_and_nothing_else_of_them() -> None:
    there = stateful_set("10Gi")
    there["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}

    kept = carrying.settled(stateful_set("20Gi"), there)
    other = carrying.settled(stateful_set("20Gi", "slow"), there)

    assert kept == stateful_set("10Gi")
    assert other == stateful_set("20Gi", "slow")
