"""Deploys a project to an emulated Kubernetes and reports what its pods do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import ObjectRef
from caraway_management.deployers.kubernetes import objects
from caraway_management.deployers.kubernetes.deployer import KubernetesDeployer
from caraway_management.deployers.protocol import RuntimeKey, Wanted
from caraway_management.domain import plans
from tests.kit.kube import Emulator, emulated

MANIFEST = "version: v1\nkind: Caraway\nname: shop\n"
SPACE = "caraway-7"
WANTED = Wanted(
    project_id=7,
    org_id=3,
    org="acme",
    name="shop",
    deployment_id=41,
    manifest=MANIFEST,
    config={
        "replicas": 2,
        "resources": {"limits": {"cpu": "2", "memory": "8Gi"}},
        "executor": {"replicas": 3, "storage_size_gb": 50},
        "image_tag": "1.2.3",
        "node_group": "large",
        "node_selector": {"topology.kubernetes.io/region": "use1"},
    },
    secrets={"S3_KEY": "hidden"},
    api_keys=(RuntimeKey(1, "cwk_one"), RuntimeKey(2, "cwk_two")),
    limits=plans.PLANS["pro"].as_json(),
)


@asynccontextmanager
async def deploying(
    installation: str = "caraway",
) -> AsyncIterator[tuple[Emulator, KubernetesDeployer]]:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), objects.MANAGER) as kube,
    ):
        yield api, KubernetesDeployer(kube, installation)


def stored(api: Emulator, kind: str, name: str, namespace: str = SPACE) -> dict[str, Any]:
    return api.there[ObjectRef(kind, namespace, name)]


def report(api: Emulator, phase: str, **status: Any) -> None:
    cluster = stored(api, "CarawayCluster", "runtime")
    generation = cluster["metadata"]["generation"]
    cluster["status"] = {"phase": phase, "observedGeneration": generation, **status}


def pod(name: str, status: dict[str, Any], cpu: str = "2") -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/name": "caraway",
        "app.kubernetes.io/instance": "runtime",
        "app.kubernetes.io/component": "executor",
    }
    container = {"name": "caraway", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "labels": labels},
        "spec": {"containers": [container]},
        "status": status,
    }


def unschedulable(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {"phase": "Pending", "conditions": [condition]}
