"""Names: kinds, labels, objects, ports and paths. Values only."""

import re
from collections.abc import Mapping

GROUP = "caraway.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CLUSTER_KIND, CLUSTERS = "CarawayCluster", "carawayclusters"
LIMITS_KIND, LIMITS = "CarawayLimits", "carawaylimits"
OPERATOR = "caraway-operator"
"""The field manager of the operator, and the name of its Lease."""

HEAD, SCHEDULER, EXECUTOR, STATE = "head", "scheduler", "executor", "state"

HTTP_PORT, FLIGHT_PORT, METRICS_PORT = 8090, 50051, 9090
HEAD_PORT, REDIS_PORT, STORE_PORT = 6390, 6379, 8095

CONFIG_DIR = "/etc/caraway"
MANIFEST_DIR = f"{CONFIG_DIR}/manifest"
MANIFEST_FILE = f"{MANIFEST_DIR}/caraway.yaml"
TOKEN_FILE = f"{CONFIG_DIR}/token/token"
TLS_DIR = f"{CONFIG_DIR}/tls"
KEYS_DIR = f"{CONFIG_DIR}/api-keys"
RESULT_STORE_DIR = f"{CONFIG_DIR}/result-store"
SECRETS_DIR = f"{CONFIG_DIR}/secrets"
LIMITS_DIR = f"{CONFIG_DIR}/limits"
LIMITS_KEY = "limits.json"
REDIS_DIR = f"{CONFIG_DIR}/redis"
DATA_DIR = "/var/lib/caraway"
HEAD_ALIVE = f"{DATA_DIR}/alive"

MAX_NAME_LENGTH = 40
"""A pod has the label `<cluster>-executor-<hash>`, and labels have at most 63 characters."""
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A Service has the name, and names of Services begin with a letter and contain no dots."""

PARTS = (
    "ca",
    "clients",
    "executor",
    "head",
    "limits",
    "manifest",
    "metrics",
    "public",
    "scheduler",
    "state",
    "system",
    "tls",
    "token",
)
"""Suffixes of object names. A cluster with such a suffix would own objects of another cluster."""

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
VERSION_LABEL = "app.kubernetes.io/version"
PART_OF_LABEL = "app.kubernetes.io/part-of"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"

REFERENCES = f"{GROUP}/references"
"""An annotation of a cluster. The operator reads what the spec refers to as soon as it changes."""
KEYS_CHECKSUM = f"{GROUP}/api-keys-checksum"
"""An annotation of a scheduler pod that runs: the API keys that the kubelet has to give it."""

_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_.-]+")


def name_problem(cluster: str) -> str | None:
    """Return why a cluster cannot have this name, or None if it can."""
    if len(cluster) > MAX_NAME_LENGTH:
        return (
            f"the name '{cluster}' has {len(cluster)} characters; at most {MAX_NAME_LENGTH} are "
            "allowed, to leave room for the names of its pods"
        )
    if not re.fullmatch(NAME_PATTERN.strip("^$"), cluster):
        return (
            f"the name '{cluster}' cannot be the name of a Service; use lowercase letters, "
            "digits and '-', and begin with a letter"
        )
    if (end := cluster.rpartition("-")[2]) in PARTS and "-" in cluster:
        return (
            f"the name '{cluster}' is the name of an object of the cluster "
            f"'{cluster.removesuffix(f'-{end}')}'; choose one that does not end in '-{end}'"
        )
    return None


def object_name(cluster: str, part: str) -> str:
    """Return the name of an object of a cluster: `<cluster>-<part>`."""
    return f"{cluster}-{part}"


def manifest_config(cluster: str) -> str:
    """Return the name of the ConfigMap with the manifest."""
    return object_name(cluster, "manifest")


def limits_config(cluster: str) -> str:
    """Return the name of the ConfigMap with the limits."""
    return object_name(cluster, "limits")


def token_secret(cluster: str) -> str:
    """Return the name of the Secret with the token of the cluster."""
    return object_name(cluster, "token")


def state_secret(cluster: str) -> str:
    """Return the name of the Secret with the password of the managed Redis."""
    return object_name(cluster, "state")


def tls_secret(cluster: str) -> str:
    """Return the name of the Secret with the certificate."""
    return object_name(cluster, "tls")


def public_service(cluster: str) -> str:
    """Return the name of the Service that clients connect to."""
    return object_name(cluster, "public")


def component_selector(cluster: str, component: str) -> dict[str, str]:
    """Return the labels that select the pods of a component. They never change."""
    return {NAME_LABEL: "caraway", INSTANCE_LABEL: cluster, COMPONENT_LABEL: component}


def cluster_selector(cluster: str) -> dict[str, str]:
    """Return the labels that select all pods of a cluster."""
    return {NAME_LABEL: "caraway", INSTANCE_LABEL: cluster}


def selector_text(labels: Mapping[str, str]) -> str:
    """Return labels as a selector for `kubectl -l` and the scale subresource."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def label_value(text: str) -> str:
    """Return the text as a valid label value."""
    return _NOT_IN_LABELS.sub("-", text)[:63].strip("-_.")
