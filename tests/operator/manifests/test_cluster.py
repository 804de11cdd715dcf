"""Properties of all objects, for any cluster."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from caraway_kube import naming
from caraway_operator.manifests import DesiredCluster, objects, secrets
from caraway_operator.manifests.meta import Object
from tests.kit import kube_schemas
from tests.operator.manifests.clusters import EVERYTHING, desired

VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
MONITORS = frozenset({"ServiceMonitor", "PodMonitor"})
LONGEST = "a" * naming.MAX_NAME_LENGTH
CLUSTERS: dict[str, DesiredCluster] = {
    "least": desired(uid="u-1"),
    "everything": desired(EVERYTHING, uid="u-1", kinds=MONITORS, secrets={"demo-token": "c1"}),
    "stopped": desired({"stopped": True}, uid="u-1"),
    "longest": desired({"scheduler": {"replicas": 2}}, name=LONGEST, uid="u-1"),
    "given": desired(
        {
            "redis": {"url": "redis://shared?prefix=demo"},
            "token": {"secretName": "mine"},
            "tls": {"enabled": True, "secretName": "mine-tls"},
            "serviceAccount": {"create": False},
            "network": {"policies": False},
            "service": {"type": "NodePort"},
            "image": {"digest": "sha256:" + "ab" * 32},
            "executor": {"cache": {"enabled": False}},
            "state": {"storage": {"enabled": False}},
        },
        uid="u-1",
    ),
}
ALL = pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)


def templates(cluster: DesiredCluster) -> Iterator[Object]:
    for each in objects(cluster):
        if each["kind"] in ("StatefulSet", "Deployment"):
            yield each["spec"]["template"]


@ALL
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_valid_for_every_kubernetes_version(
    cluster: DesiredCluster, version: str
) -> None:
    made = [
        secrets.token(cluster, "t"),
        secrets.redis_password(cluster, "p"),
        secrets.tls(cluster, "demo-tls", {"tls.crt": "c", "tls.key": "k", "ca.crt": "a"}),
    ]
    for each in [*objects(cluster), *made]:
        if each["kind"] not in MONITORS:
            kube_schemas.validate(each, version)


@ALL
def test_equal_clusters_have_equal_json_objects(cluster: DesiredCluster) -> None:
    assert objects(cluster) == objects(cluster)
    assert json.loads(json.dumps(objects(cluster))) == objects(cluster)


@ALL
def test_each_object_is_unique_and_owned_by_the_cluster(cluster: DesiredCluster) -> None:
    made = objects(cluster)
    names = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(set(names)) == len(names)
    for each in made:
        meta = each["metadata"]
        assert meta["namespace"] == "shop"
        assert meta["name"] == cluster.name or meta["name"].startswith(f"{cluster.name}-")
        assert (
            meta["labels"].items()
            >= {
                "app.kubernetes.io/name": "caraway",
                "app.kubernetes.io/instance": cluster.name,
                "app.kubernetes.io/part-of": "caraway",
                "app.kubernetes.io/managed-by": "caraway-operator",
            }.items()
        )
        [owner] = meta["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == (
            "CarawayCluster",
            cluster.name,
            "u-1",
        )
        assert owner["controller"] and owner["blockOwnerDeletion"]


@ALL
def test_object_names_have_reserved_suffixes(cluster: DesiredCluster) -> None:
    for each in objects(cluster):
        part = each["metadata"]["name"].removeprefix(cluster.name).removeprefix("-")
        assert part == "" or part in naming.PARTS


@ALL
def test_names_and_labels_fit(cluster: DesiredCluster) -> None:
    for each in objects(cluster):
        assert len(each["metadata"]["name"]) <= 63
        if each["kind"] == "StatefulSet":
            # The label `controller-revision-hash` is the name and ten more characters.
            assert len(each["metadata"]["name"]) + len("-") + 10 <= 63
        for value in each["metadata"]["labels"].values():
            assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value)


@ALL
def test_selectors_use_constant_labels_and_match_the_pods(cluster: DesiredCluster) -> None:
    for each in objects(cluster):
        if each["kind"] in ("StatefulSet", "Deployment"):
            selector = each["spec"]["selector"]["matchLabels"]
            assert set(selector) == {
                "app.kubernetes.io/name",
                "app.kubernetes.io/instance",
                "app.kubernetes.io/component",
            }
            assert each["spec"]["template"]["metadata"]["labels"].items() >= selector.items()
            for claim in each["spec"].get("volumeClaimTemplates", []):
                assert claim["metadata"]["labels"] == selector


@ALL
def test_pods_meet_the_restricted_standard(cluster: DesiredCluster) -> None:
    for template in templates(cluster):
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        context = spec["securityContext"]
        assert context["runAsNonRoot"] and context["runAsUser"] == context["fsGroup"] == 10001
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False and own["privileged"] is False
            assert own["capabilities"] == {"drop": ["ALL"]} and own["readOnlyRootFilesystem"]
            assert not own.keys() & {"runAsUser", "seccompProfile"}


@ALL
def test_every_mount_has_a_volume_and_no_list_has_a_key_twice(cluster: DesiredCluster) -> None:
    for each in objects(cluster):
        if each["kind"] not in ("StatefulSet", "Deployment"):
            continue
        spec = each["spec"]["template"]["spec"]
        claims = [
            claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", [])
        ]
        volumes = [*(volume["name"] for volume in spec["volumes"]), *claims]
        assert len(set(volumes)) == len(volumes)
        for container in spec["containers"]:
            mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert len(set(mounts)) == len(mounts)
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
            names = [variable["name"] for variable in container["env"]]
            assert len(set(names)) == len(names)
            assert {"/tmp", naming.DATA_DIR} <= set(mounts)


@ALL
def test_every_port_says_that_it_is_tcp_and_services_meet_ports_of_pods(
    cluster: DesiredCluster,
) -> None:
    ports: dict[str, set[Any]] = {}
    for template in templates(cluster):
        component = template["metadata"]["labels"]["app.kubernetes.io/component"]
        for container in template["spec"]["containers"]:
            assert all(port["protocol"] == "TCP" for port in container["ports"])
            names = {port["name"] for port in container["ports"]}
            ports.setdefault(component, set()).update(names)
    for each in objects(cluster):
        if each["kind"] == "Service":
            component = each["spec"]["selector"]["app.kubernetes.io/component"]
            for port in each["spec"]["ports"]:
                assert port["protocol"] == "TCP" and port["targetPort"] in ports[component]


@ALL
def test_no_password_is_in_an_argument_or_a_variable(cluster: DesiredCluster) -> None:
    for template in templates(cluster):
        for container in template["spec"]["containers"]:
            text = json.dumps([container["args"], container.get("command")])
            assert "redis://" not in text and "PASSWORD" not in text


@ALL
def test_memory_is_limited_and_shared_memory_counts_in_it(cluster: DesiredCluster) -> None:
    for template in templates(cluster):
        for container in template["spec"]["containers"]:
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys()
            assert "memory" in resources["limits"]


def test_a_version_is_told_in_labels_even_if_it_is_a_digest() -> None:
    [label] = {
        each["metadata"]["labels"]["app.kubernetes.io/version"]
        for each in objects(CLUSTERS["given"])
    }
    assert label == "ab" * 6


def test_what_there_is_at_least() -> None:
    made = [(each["kind"], each["metadata"]["name"]) for each in objects(CLUSTERS["least"])]
    assert made == [
        ("ServiceAccount", "demo-system"),
        ("ServiceAccount", "demo"),
        ("ConfigMap", "demo-manifest"),
        ("ConfigMap", "demo-limits"),
        ("Service", "demo-head"),
        ("Service", "demo"),
        ("Service", "demo-executor"),
        ("Service", "demo-state"),
        ("NetworkPolicy", "demo"),
        ("NetworkPolicy", "demo-clients"),
        ("NetworkPolicy", "demo-metrics"),
        ("PodDisruptionBudget", "demo-executor"),
        ("StatefulSet", "demo-state"),
        ("StatefulSet", "demo-head"),
        ("Deployment", "demo-scheduler"),
        ("StatefulSet", "demo-executor"),
    ]


def test_stopped_is_no_pods_and_everything_else() -> None:
    replicas = {
        each["metadata"]["name"]: each["spec"]["replicas"]
        for each in objects(CLUSTERS["stopped"])
        if "replicas" in each.get("spec", {})
    }
    assert replicas == {"demo-state": 0, "demo-head": 0, "demo-scheduler": 0, "demo-executor": 0}
