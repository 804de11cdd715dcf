"""The objects of a project in Kubernetes, as values: its own namespace with its content."""

import base64
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from caraway_kube import naming
from caraway_kube.api.kinds import CLUSTER as CLUSTER_KIND
from caraway_kube.api.kinds import CONFIG_MAP, LIMITS, NAMESPACE, SECRET, Object, ResourceKind
from caraway_management.deployers.protocol import Wanted
from caraway_management.domain.platform import NODE_SELECTOR

MANAGER = "caraway-management"
CLUSTER, PLAN, MANIFEST, SECRETS, KEYS = "runtime", "plan", "manifest", "secrets", "api-keys"
MANIFEST_KEY = "caraway.yaml"
_STORE = "project"
"""The name of the secret store. Manifests refer to `${secrets:NAME}`, which is in all stores."""
MANAGED_LABEL = "app.kubernetes.io/managed-by"
INSTALLATION_LABEL = "caraway.dev/installation"
PROJECT_LABEL = "caraway.dev/project"
ORGANIZATION_LABEL = "caraway.dev/organization"
CREATED_LABEL = "caraway.dev/created"
DEPLOYMENT_ANNOTATION = "caraway.dev/deployment"
_NODE_GROUP_LABEL = "caraway.dev/node-group"


def namespace_name(installation: str, project_id: int) -> str:
    """Return the name of a project's namespace."""
    return f"{installation}-{project_id}"


def namespace(wanted: Wanted, installation: str) -> Object:
    """Return the namespace of a project."""
    return {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.name,
        "metadata": {
            "name": namespace_name(installation, wanted.project_id),
            "labels": labels(wanted, installation),
        },
    }


def labels(wanted: Wanted, installation: str) -> dict[str, str]:
    """Return the labels of all objects of a project, which say which one of its id they are for."""
    created = {CREATED_LABEL: str(wanted.created)} if wanted.created else {}
    return created | {
        MANAGED_LABEL: MANAGER,
        INSTALLATION_LABEL: installation,
        PROJECT_LABEL: str(wanted.project_id),
        ORGANIZATION_LABEL: str(wanted.org_id),
    }


def contents(wanted: Wanted, installation: str) -> list[Object]:
    """Return the objects of the namespace besides the cluster, which refers to them."""
    keys = {f"key-{key.number}": key.value for key in wanted.api_keys}
    made = partial(_made, wanted, installation)
    return [
        made(SECRET, SECRETS, type="Opaque", data=_encoded(wanted.secrets)),
        made(SECRET, KEYS, type="Opaque", data=_encoded(keys)),
        made(CONFIG_MAP, MANIFEST, data={MANIFEST_KEY: wanted.manifest}),
        made(LIMITS, PLAN, spec={**wanted.limits, "organization": wanted.org}),
    ]


def cluster(wanted: Wanted, installation: str, applied: Iterable[Object]) -> Object:
    """Return the cluster of a project, which refers to objects that have been applied.

    It changes with their versions: the operator does not watch Secrets, and reads them again then.
    """
    versions = ".".join(str(each["metadata"].get("resourceVersion", "")) for each in applied)
    resource = _made(wanted, installation, CLUSTER_KIND, CLUSTER, spec=cluster_spec(wanted))
    resource["metadata"]["annotations"] = {
        DEPLOYMENT_ANNOTATION: str(wanted.deployment_id),
        naming.REFERENCES: versions,
    }
    return resource


def _made(
    wanted: Wanted, installation: str, kind: ResourceKind, name: str, **fields: object
) -> Object:
    metadata = {
        "name": name,
        "namespace": namespace_name(installation, wanted.project_id),
        "labels": labels(wanted, installation),
    }
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}


def cluster_spec(wanted: Wanted) -> Object:
    """Return the spec of the project's cluster."""
    config = wanted.config
    scheduler: Object = {"replicas": config.get("replicas", 1)}
    executor: Object = {}
    if resources := config.get("resources"):
        scheduler["resources"] = resources
    given = config.get("executor") or {}
    if "replicas" in given:
        executor["replicas"] = given["replicas"]
    if "resources" in given:
        executor["resources"] = given["resources"]
    if size := given.get("storage_size_gb") or config.get("storage_size_gb"):
        executor["cache"] = {"size": f"{size}Gi"}
    labels = dict(config.get(NODE_SELECTOR) or {})
    if group := config.get("node_group"):
        labels[_NODE_GROUP_LABEL] = group
    if labels:
        for component in (scheduler, executor):
            component["nodeSelector"] = labels
    spec: Object = {
        "organization": wanted.org,
        "stopped": wanted.is_paused,
        "manifestFrom": {"configMap": {"name": MANIFEST, "key": MANIFEST_KEY}},
        "secrets": [{"name": _STORE, "secretName": SECRETS}],
        "auth": {
            "apiKeys": [
                {"name": KEYS, "key": f"key-{key.number}", "access": key.access}
                for key in wanted.api_keys
            ]
        },
        "scheduler": scheduler,
        "executor": executor,
    }
    if image := _image(config):
        spec["image"] = image
    return spec


def _image(config: Mapping[str, Any]) -> Object:
    """Return the image that a project wants in place of that of the operator's release."""
    image: Object = {}
    parts = [config[name] for name in ("registry", "image") if config.get(name)]
    if parts:
        image["repository"] = "/".join(parts)
    if tag := config.get("image_tag"):
        image["tag"] = tag
    return image


def _encoded(values: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
