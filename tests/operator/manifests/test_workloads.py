"""The workloads and pod templates of each component."""

from typing import Any

from caraway_cluster import head
from caraway_kube import naming
from caraway_operator.manifests.meta import Object
from tests.operator.manifests.clusters import EVERYTHING, container, desired, made, pod

LABELS = {
    "app.kubernetes.io/name": "caraway",
    "app.kubernetes.io/instance": "demo",
    "app.kubernetes.io/component": "executor",
    "app.kubernetes.io/part-of": "caraway",
    "app.kubernetes.io/managed-by": "caraway-operator",
    "app.kubernetes.io/version": "0.1.0",
}
SELECTOR = {key: LABELS[key] for key in list(LABELS)[:3]}
IDENTITY = [
    {
        "name": "POD_NAME",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
    },
    {
        "name": "POD_IP",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
    },
    {"name": "HOME", "value": "/var/lib/caraway"},
    {"name": "TMPDIR", "value": "/tmp"},
]


def probe(path: str, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "metrics", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
        "successThreshold": 1,
    }


EXECUTOR: Object = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "demo-executor", "namespace": "shop", "labels": LABELS},
    "spec": {
        "replicas": 2,
        "serviceName": "demo-executor",
        "selector": {"matchLabels": SELECTOR},
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 3,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "serviceAccountName": "demo",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {
                    "fsGroup": 10001,
                    "fsGroupChangePolicy": "OnRootMismatch",
                    "runAsGroup": 10001,
                    "runAsNonRoot": True,
                    "runAsUser": 10001,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "terminationGracePeriodSeconds": 150,
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": SELECTOR},
                    }
                ],
                "containers": [
                    {
                        "name": "executor",
                        "image": "caraway:0.1.0",
                        "imagePullPolicy": "IfNotPresent",
                        "args": [
                            "executor",
                            *("--head", "demo-head:6390"),
                            *("--node-ip", "$(POD_IP)"),
                            *("--id", "$(POD_NAME)"),
                            *("--token-file", "/etc/caraway/token/token"),
                            *("--data-dir", "/var/lib/caraway"),
                            *("--log-format", "json"),
                            *("--cores", "1"),
                            # 2048 MiB: 409 of shared memory, 384 + 102 of processes, half of 1153.
                            *("--memory", "576MiB"),
                            *("--object-store-memory", "368MiB"),
                            *("--metrics", "0.0.0.0:9090"),
                            *("--drain-timeout", "120"),
                        ],
                        "env": IDENTITY,
                        "ports": [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
                        "resources": {
                            "requests": {"cpu": "1", "memory": "2Gi"},
                            "limits": {"memory": "2Gi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                            "privileged": False,
                            "readOnlyRootFilesystem": True,
                            "runAsNonRoot": True,
                        },
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "volumeMounts": [
                            {"name": "data", "mountPath": "/var/lib/caraway"},
                            {
                                "name": "token",
                                "mountPath": "/etc/caraway/token",
                                "readOnly": True,
                            },
                            {"name": "tmp", "mountPath": "/tmp"},
                            {"name": "shm", "mountPath": "/dev/shm"},
                        ],
                        "startupProbe": {
                            **probe("/health?wait=50", 5, 60, 60),
                            "initialDelaySeconds": 5,
                        },
                        "readinessProbe": probe("/v1/ready", 5, 5, 2),
                        "livenessProbe": probe("/health", 10, 5, 6),
                    }
                ],
                "volumes": [
                    {
                        "name": "token",
                        "secret": {
                            "secretName": "demo-token",
                            "defaultMode": 0o440,
                            "items": [{"key": "token", "path": "token"}],
                        },
                    },
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "409Mi"}},
                ],
            },
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data", "labels": SELECTOR},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "10Gi"}},
                    "volumeMode": "Filesystem",
                },
            }
        ],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    },
}


def test_executors_by_default() -> None:
    assert made(desired(), "StatefulSet", "demo-executor") == EXECUTOR


def test_stopped_executors_keep_their_volumes() -> None:
    spec = made(desired({"stopped": True}), "StatefulSet", "demo-executor")["spec"]
    assert spec["replicas"] == 0
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Delete",
        "whenScaled": "Retain",
    }


def test_decided_replicas_and_partition_are_used() -> None:
    spec = made(desired(executors=5, partition=3), "StatefulSet", "demo-executor")["spec"]
    assert spec["replicas"] == 5
    assert spec["updateStrategy"]["rollingUpdate"] == {"partition": 3}


def test_executors_with_many_settings() -> None:
    found = made(desired(EVERYTHING), "StatefulSet", "demo-executor")["spec"]
    [claim] = found["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"] == {"requests": {"storage": "50Gi"}}
    assert found["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }
    spec = found["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 330
    [only] = spec["containers"]
    assert only["image"] == "caraway-executor:1.2.3"
    assert only["resources"] == {
        "requests": {"cpu": "1500m", "memory": "4Gi"},
        "limits": {"memory": "8Gi"},
    }
    assert only["args"][only["args"].index("--cores") + 1] == "2"


def test_without_a_claim_data_is_in_an_empty_dir() -> None:
    found = made(
        desired({"executor": {"cache": {"enabled": False}}}), "StatefulSet", "demo-executor"
    )
    assert "volumeClaimTemplates" not in found["spec"]
    assert {"name": "data", "emptyDir": {}} in found["spec"]["template"]["spec"]["volumes"]


def test_schedulers_by_default() -> None:
    found = made(desired(), "Deployment", "demo-scheduler")
    template = found["spec"].pop("template")
    assert found["spec"] == {
        "replicas": 1,
        "selector": {"matchLabels": {**SELECTOR, "app.kubernetes.io/component": "scheduler"}},
        "revisionHistoryLimit": 3,
        "progressDeadlineSeconds": 900,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0},
        },
    }
    [only] = template["spec"]["containers"]
    assert only["args"] == [
        *("scheduler", "/etc/caraway/manifest/caraway.yaml"),
        *("--head", "demo-head:6390"),
        *("--node-ip", "$(POD_IP)"),
        *("--id", "$(POD_NAME)"),
        *("--token-file", "/etc/caraway/token/token"),
        *("--data-dir", "/var/lib/caraway"),
        *("--log-format", "json"),
        *("--http", "0.0.0.0:8090"),
        *("--flight", "0.0.0.0:50051"),
        *("--metrics", "0.0.0.0:9090"),
        *("--object-store-memory", "137MiB"),
        *("--limits-file", "/etc/caraway/limits/limits.json"),
    ]
    assert only["env"] == [
        *IDENTITY,
        {
            "name": "REDIS_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "demo-state", "key": "password"}},
        },
        {"name": "CARAWAY_STATE", "value": "redis://:$(REDIS_PASSWORD)@demo-state:6379"},
        {"name": "CARAWAY_SHUTDOWN_DELAY", "value": "5"},
    ]
    # The process itself serves on, and announces the end of connections meanwhile.
    assert "lifecycle" not in only
    # The manifest's shutdown_timeout of 30 s, the delay, and a margin.
    assert template["spec"]["terminationGracePeriodSeconds"] == 60


def test_a_longer_shutdown_extends_the_grace_period() -> None:
    manifest = {"name": "app", "runtime": {"shutdown_timeout": "5m"}}
    assert (
        pod(desired(manifest=manifest), "scheduler")["spec"]["terminationGracePeriodSeconds"] == 330
    )


def test_schedulers_with_many_settings() -> None:
    cluster = desired(EVERYTHING)
    template = pod(cluster, "scheduler")
    assert template["metadata"]["labels"]["team"] == "data"
    assert template["metadata"]["annotations"]["note"] == "yes"
    spec = template["spec"]
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["tolerations"] == EVERYTHING["scheduler"]["tolerations"]
    assert spec["imagePullSecrets"] == [{"name": "login"}]
    [constraint] = spec["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "zone" and "labelSelector" in constraint
    [only] = spec["containers"]
    assert only["image"] == "registry.example:5000/mirror/caraway:1.2.3"
    assert only["imagePullPolicy"] == "Always"
    env = {variable["name"]: variable for variable in only["env"]}
    assert env["HOME"] == {"name": "HOME", "value": "/tmp"}
    assert env["REGION"] == {"name": "REGION", "value": "eu"}
    assert env["CARAWAY_STATE"]["valueFrom"] == {"secretKeyRef": {"name": "redis", "key": "url"}}
    assert only["envFrom"] == [{"secretRef": {"name": "cloud"}}]
    assert only["livenessProbe"]["periodSeconds"] == 20
    mounts = {mount["mountPath"]: mount["name"] for mount in only["volumeMounts"]}
    assert (
        mounts.items()
        >= {
            "/etc/caraway/tls": "tls",
            "/etc/caraway/api-keys": "caraway-api-keys",
            "/etc/caraway/result-store": "caraway-result-store",
            "/etc/caraway/secrets/vault": "secret-0",
            "/data": "files",
        }.items()
    )
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["caraway-api-keys"]["projected"]["sources"] == [
        {"secret": {"name": "keys", "items": [{"key": "reader", "path": "0"}]}},
        {"secret": {"name": "keys", "items": [{"key": "writer", "path": "1"}]}},
    ]
    assert volumes["caraway-result-store"]["projected"]["sources"] == [
        {"secret": {"name": "bucket", "items": [{"key": "id", "path": "s3_key"}]}},
        {"secret": {"name": "bucket", "items": [{"key": "secret", "path": "s3_secret"}]}},
    ]


def test_users_cannot_override_selector_labels() -> None:
    labels = {"app.kubernetes.io/component": "head", "mine": "1"}
    template = pod(desired({"executor": {"podLabels": labels}}), "executor")
    assert template["metadata"]["labels"] == {**LABELS, "mine": "1"}


def test_the_head() -> None:
    only = container(desired(), "head")
    assert only["args"] == [
        "head",
        *("--address", "$(POD_IP):6390"),
        *("--token-file", "/etc/caraway/token/token"),
        *("--data-dir", "/var/lib/caraway"),
        *("--log-format", "json"),
    ]
    assert [variable["name"] for variable in only["env"]][-2:] == [
        "REDIS_PASSWORD",
        "CARAWAY_STATE",
    ]
    assert only["readinessProbe"]["tcpSocket"] == {"port": "gcs"}
    assert only["startupProbe"]["tcpSocket"] == {"port": "gcs"}
    [*shell, script] = only["livenessProbe"]["exec"]["command"]
    assert shell == ["sh", "-c"] and f"{naming.DATA_DIR}/{head.ALIVE}" in script
    assert pod(desired(), "head")["spec"]["serviceAccountName"] == "demo-system"


def test_the_state_runs_a_redis_and_a_store_on_one_volume() -> None:
    found = made(desired(), "StatefulSet", "demo-state")
    redis, store = found["spec"]["template"]["spec"]["containers"]
    assert redis["command"] == ["valkey-server"]
    assert redis["args"] == [
        "/etc/caraway/redis/valkey.conf",
        *("--port", "6379"),
        *("--dir", "/var/lib/caraway"),
        *("--save", ""),
        *("--appendonly", "yes"),
        *("--appendfsync", "always"),
        *("--maxmemory", "153mb"),
        *("--maxmemory-policy", "noeviction"),
    ]
    assert "command" not in store
    assert store["args"] == [
        "store",
        *("--dir", "/var/lib/caraway/store"),
        *("--listen", "0.0.0.0:8095"),
        *("--token-file", "/etc/caraway/token/token"),
        *("--log-format", "json"),
    ]
    assert [mount["mountPath"] for mount in redis["volumeMounts"]] == [
        "/var/lib/caraway",
        "/etc/caraway/redis",
        "/tmp",
    ]
    assert found["spec"]["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }


def test_the_state_leaves_out_what_is_external() -> None:
    redis_given = desired({"redis": {"url": "redis://shared"}})
    assert [each["name"] for each in pod(redis_given, "state")["spec"]["containers"]] == ["store"]
    place = {"resultStore": {"url": "s3://bucket/answers"}}
    store_given = desired(place)
    assert [each["name"] for each in pod(store_given, "state")["spec"]["containers"]] == ["redis"]
    by_manifest = desired(
        manifest={"name": "app", "runtime": {"scheduler": {"state_location": "s3://bucket/a"}}}
    )
    assert [each["name"] for each in pod(by_manifest, "state")["spec"]["containers"]] == ["redis"]
