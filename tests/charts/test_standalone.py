"""In standalone mode, the chart renders the objects that the operator would create."""

import json
from typing import Any

import pytest
import yaml

from caraway_kube.resources import manifest_checks, quantities
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.manifests import DesiredCluster, objects
from tests.kit import helm

NO_OPERATOR = {"operator": {"enabled": False}}
MONITORING = (
    "--api-versions", "monitoring.coreos.com/v1/ServiceMonitor",
    "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
)  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "sizes": {
        "head": {"resources": {"limits": {"memory": "1000M"}}, "terminationGracePeriodSeconds": 5},
        "scheduler": {"replicas": 3, "resources": {"requests": {"cpu": "1500m", "memory": "3Gi"}}},
        "executor": {
            "replicas": 7,
            "resources": {"requests": {"cpu": 3}, "limits": {"memory": "6.5Gi", "cpu": "2500m"}},
            "cache": {"size": "100Gi", "storageClass": "fast", "retain": True},
            "drainTimeoutSeconds": 300,
        },
        "state": {"storage": {"size": "1Ti", "retain": False}},
    },
    "without volumes": {
        "executor": {"cache": {"enabled": False}, "replicas": 1},
        "state": {"storage": {"enabled": False}},
    },
    "given state": {
        "redis": {"urlFrom": {"name": "redis", "key": "url"}},
        "resultStore": {
            "url": "s3://bucket/caraway",
            "params": {"s3_region": "eu-central-1"},
            "secretParams": [
                {"param": "s3_key", "name": "s3", "key": "id"},
                {"param": "s3_secret", "name": "s3", "key": "secret"},
            ],
        },
    },
    "parallel reads": {
        "executor": {
            "replicas": 3,
            "flight": {
                "enabled": True,
                "serviceType": "LoadBalancer",
                "serviceAnnotations": {"a": "b"},
                "advertisedHost": "$(POD_NAME).flight.example",
                "advertisedPort": 443,
            },
        },
        "tls": {"enabled": True},
        "network": {"clients": [{"podSelector": {}}]},
    },
    "parallel reads inside": {"executor": {"flight": {"enabled": True}}},
    "given redis": {"redis": {"url": "rediss://redis.example:6380/2?prefix=a"}},
    "secrets, keys and certificate": {
        "secrets": [{"name": "shop", "secretName": "shop-logins"}],
        "auth": {
            "apiKeys": [
                {"name": "keys", "key": "reader"},
                {"name": "keys", "key": "writer", "access": "rw"},
            ]
        },
        "tls": {"enabled": True, "secretName": "certificate"},
        "token": {"secretName": "own-token"},
        "state": {"secretName": "own-password"},
        "manifest": {
            "version": "v1", "kind": "Caraway", "name": "shop",
            "secrets": [{"from": "env", "name": "env"}],
            "runtime": {
                "shutdown_timeout": "90s",
                "auth": {"api-key": {"keys": ["${env:ROOT}:rw"]}},
                "query": {"max_queued_queries": 1000000},
            },
        },
    },
    "place of answers in the manifest": {
        "manifest": {
            "version": "v1", "kind": "Caraway", "name": "shop",
            "runtime": {"scheduler": {"state_location": "gs://bucket/answers"}},
            "views": [{"name": "numbers", "sql": "SELECT '<1e5>' AS a, '0o17' AS b"}],
        },
    },
    "pods": {
        "image": {"repository": "registry.example/caraway", "tag": "1.2.3-rc.1",
                  "pullPolicy": "Always", "pullSecrets": ["login"]},
        "logFormat": "text",
        "scheduler": {"image": {"tag": "next"}, "priorityClassName": "high"},
        "executor": {
            "image": {"repository": "registry.example/executor", "digest": f"sha256:{'a' * 64}"},
            "env": [{"name": "AWS_REGION", "value": "x"}, {"name": "TMPDIR", "value": "/scratch"}],
            "envFrom": [{"secretRef": {"name": "cloud"}}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"},
                             {"name": "scratch", "mountPath": "/tmp"}],
            "podLabels": {"team": "data", "app.kubernetes.io/name": "mine"},
            "podAnnotations": {"a": "b"},
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ],
            "probes": {"liveness": {"failureThreshold": 3},
                       "readiness": {"exec": {"command": ["true"]}}},
            "terminationGracePeriodSeconds": 200,
        },
        "head": {"topologySpreadConstraints": []},
    },
    "network": {
        "service": {
            "type": "LoadBalancer", "annotations": {"a": "b"}, "labels": {"c": "d"},
            "loadBalancerClass": "internal", "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "externalTrafficPolicy": "Local",
        },
        "network": {"clients": [], "metrics": [], "egress": []},
        "serviceAccount": {"name": "reader", "annotations": {"role": "x"}},
    },
    "narrow network": {
        "service": {"annotations": {"a": "b"}},
        "network": {
            "clients": [{"podSelector": {"matchLabels": {"app": "web"}}}],
            "metrics": [{"namespaceSelector": {}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
        "serviceAccount": {"create": False, "name": "given"},
    },
    "no account": {"serviceAccount": {"create": False}},
    "no policies": {"network": {"policies": False}, "service": {"type": "NodePort"}},
    "stopped": {"stopped": True},
    "monitoring": {
        "monitoring": {
            "serviceMonitor": True, "podMonitor": True, "interval": "10s", "labels": {"r": "p"},
        },
        "updateStrategy": {"progressDeadlineSeconds": 100},
    },
}  # fmt: skip


def expected(spec: dict[str, Any], *, monitors: bool) -> list[dict[str, Any]]:
    """Return the operator's objects for the CarawayCluster that the chart renders."""
    (resource,) = helm.of_kind(helm.render({"cluster": {"spec": spec}}), "CarawayCluster")
    parsed = CarawayClusterSpec.model_validate(resource["spec"])
    checked = manifest_checks.check_inline(parsed)
    assert checked.manifest is not None, checked.problems
    kinds = frozenset({"ServiceMonitor", "PodMonitor"} if monitors else ())
    desired = DesiredCluster(
        name="caraway", namespace="default", spec=parsed, manifest=checked.manifest,
        manager="Helm", kinds=kinds,
    )  # fmt: skip
    return objects(desired)


def by_name(found: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(each["kind"], each["metadata"]["name"]): comparable(each) for each in found}


def comparable(made: dict[str, Any]) -> dict[str, Any]:
    """Return an object without values that can be written in several ways."""
    made = json.loads(json.dumps(made))
    if made["kind"] == "ConfigMap" and "caraway.yaml" in made["data"]:
        made["data"] = yaml.safe_load(made["data"]["caraway.yaml"])
    template = made.get("spec", {}).get("template")
    if template:
        checksum = template["metadata"].get("annotations", {}).get("caraway.dev/manifest-checksum")
        if checksum:
            assert len(checksum) == 32
            template["metadata"]["annotations"]["caraway.dev/manifest-checksum"] = "..."
        for container in template["spec"]["containers"]:
            for amounts in container["resources"].values():
                amounts.update({key: quantities.canonical(v) for key, v in amounts.items()})
        for volume in template["spec"]["volumes"]:
            if (size := volume.get("emptyDir", {}).get("sizeLimit")) is not None:
                volume["emptyDir"]["sizeLimit"] = quantities.canonical(size)
    for claim in made.get("spec", {}).get("volumeClaimTemplates", []):
        amounts = claim["spec"]["resources"]["requests"]
        amounts["storage"] = quantities.canonical(amounts["storage"])
    return dict(made)


# test_both_helms_render_the_same compares the two versions of helm in `make test`.
@pytest.mark.parametrize("version", [pytest.param("3", marks=pytest.mark.full), "4"])
@pytest.mark.parametrize("case", CASES)
def test_objects_are_those_of_the_operator(case: str, version: str) -> None:
    values = {**NO_OPERATOR, "cluster": {"spec": CASES[case]}, "tests": {"enabled": False}}
    rendered = helm.render(values, *MONITORING, helm=version)
    made = by_name([each for each in rendered if each["kind"] != "Secret"])
    desired = by_name(expected(CASES[case], monitors=True))
    assert set(made) == set(desired)
    for name in desired:
        assert made[name] == desired[name], name


def test_monitors_are_left_out_where_their_kind_is_unknown() -> None:
    values = {**NO_OPERATOR, "cluster": {"spec": CASES["monitoring"]}}
    made = {each["kind"] for each in helm.render(values)}
    assert made & {"ServiceMonitor", "PodMonitor"} == set()


def test_secrets_are_made_unless_they_are_given() -> None:
    values = {**NO_OPERATOR, "cluster": {"spec": {"tls": {"enabled": True}}}}
    made = {each["metadata"]["name"]: each for each in helm.of_kind(helm.render(values), "Secret")}
    assert set(made) == {"caraway-token", "caraway-state", "caraway-tls"}
    assert set(made["caraway-tls"]["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert made["caraway-tls"]["type"] == "kubernetes.io/tls"
    given = {**NO_OPERATOR, "cluster": {"spec": CASES["secrets, keys and certificate"]}}
    assert helm.of_kind(helm.render(given), "Secret") == []


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"manifestFrom": {"configMap": {"name": "a"}}}, "manifestFrom needs the operator"),
        ({"executor": {"maxReplicas": 5}}, "maxReplicas needs the operator"),
        (
            {"tls": {"enabled": True}, "manifest": {"runtime": {"tls": {"key_file": "a"}}}},
            "the manifest has runtime.tls as well",
        ),
        (
            {"resultStore": {"url": "s3://a/b"},
             "manifest": {"runtime": {"scheduler": {"state_location": "s3://c/d"}}}},
            "the manifest has runtime.scheduler.state_location as well",
        ),
        (
            {"auth": {"apiKeys": [{"name": "a", "key": "b"}]},
             "manifest": {"runtime": {"auth": {"api-key": {"enabled": False}}}}},
            "take 'enabled: false' out of it",
        ),
    ],
)  # fmt: skip
def test_what_needs_an_operator_or_contradicts_itself_is_refused(
    spec: dict[str, Any], told: str
) -> None:
    with pytest.raises(helm.RefusedError, match=told):
        helm.render({**NO_OPERATOR, "cluster": {"spec": spec}})
