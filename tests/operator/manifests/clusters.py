"""Desired clusters for tests."""

from typing import Any

from caraway_kube.resources import manifest_checks, parsing
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.manifests import DesiredCluster, objects
from caraway_operator.manifests.meta import Object

MANIFEST: dict[str, Any] = {"version": "v2", "kind": "Caraway", "name": "app"}
EVERYTHING: dict[str, Any] = {
    "organization": "acme",
    "logFormat": "text",
    "image": {
        "repository": "registry.example:5000/mirror/caraway",
        "tag": "1.2.3",
        "pullPolicy": "Always",
        "pullSecrets": ["login"],
    },
    "head": {
        "resources": {"limits": {"memory": "1Gi", "cpu": 1}},
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 45,
    },
    "scheduler": {
        "replicas": 2,
        "env": [{"name": "REGION", "value": "eu"}, {"name": "HOME", "value": "/tmp"}],
        "envFrom": [{"secretRef": {"name": "cloud"}}],
        "podLabels": {"team": "data"},
        "podAnnotations": {"note": "yes"},
        "nodeSelector": {"disk": "fast"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "data", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "files", "persistentVolumeClaim": {"claimName": "files"}}],
        "volumeMounts": [{"name": "files", "mountPath": "/data", "readOnly": True}],
        "probes": {"liveness": {"periodSeconds": 20}},
    },
    "executor": {
        "replicas": 4,
        "minReplicas": 2,
        "maxReplicas": 8,
        "resources": {"requests": {"cpu": "1500m", "memory": "4Gi"}, "limits": {"memory": "8Gi"}},
        "image": {"repository": "caraway-executor"},
        "cache": {"size": "50Gi", "storageClass": "fast", "retain": True},
        "drainTimeoutSeconds": 300,
    },
    "redis": {"urlFrom": {"name": "redis", "key": "url"}},
    "resultStore": {
        "url": "s3://bucket/answers",
        "params": {"s3_region": "eu-central-1"},
        "secretParams": [
            {"param": "s3_key", "name": "bucket", "key": "id"},
            {"param": "s3_secret", "name": "bucket", "key": "secret"},
        ],
    },
    "secrets": [{"name": "vault", "secretName": "passwords"}],
    "auth": {
        "apiKeys": [
            {"name": "keys", "key": "reader"},
            {"name": "keys", "key": "writer", "access": "rw"},
        ]
    },
    "tls": {"enabled": True},
    "service": {
        "type": "LoadBalancer",
        "annotations": {"lb": "internal"},
        "labels": {"seen": "outside"},
        "loadBalancerClass": "cloud",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "externalTrafficPolicy": "Local",
    },
    "network": {
        "clients": [{"namespaceSelector": {"matchLabels": {"use": "sql"}}}],
        "metrics": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
    },
    "serviceAccount": {"annotations": {"role": "reader"}},
    "monitoring": {
        "serviceMonitor": True,
        "podMonitor": True,
        "interval": "10s",
        "labels": {"release": "prometheus"},
    },
    "updateStrategy": {"progressDeadlineSeconds": 600},
}


def spec(manifest: dict[str, Any] | None = None, **sections: Any) -> CarawayClusterSpec:
    """Return the parsed spec, which must be valid."""
    parsed = parsing.cluster("demo", {"manifest": manifest or MANIFEST, **sections})
    assert parsed.spec is not None, parsed.problems
    return parsed.spec


def desired(
    sections: dict[str, Any] | None = None,
    *,
    manifest: dict[str, Any] | None = None,
    name: str = "demo",
    **fields: Any,
) -> DesiredCluster:
    """Return a cluster with these sections."""
    checked = spec(manifest, **(sections or {}))
    found = manifest_checks.check_inline(checked)
    assert found.manifest is not None, found.problems
    return DesiredCluster(name, "shop", checked, found.manifest, **fields)


def made(cluster: DesiredCluster, kind: str, name: str) -> Object:
    """Return the object with this kind and name."""
    found = [
        each
        for each in objects(cluster)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    assert len(found) == 1, [(each["kind"], each["metadata"]["name"]) for each in objects(cluster)]
    return found[0]


def pod(cluster: DesiredCluster, component: str) -> Object:
    """Return the pod template of a component."""
    kind = "Deployment" if component == "scheduler" else "StatefulSet"
    template: Object = made(cluster, kind, f"{cluster.name}-{component}")["spec"]["template"]
    return template


def container(cluster: DesiredCluster, component: str, number: int = 0) -> Object:
    """Return a container of a component."""
    found: Object = pod(cluster, component)["spec"]["containers"][number]
    return found
