"""Projects become objects that the operator takes, and its status becomes theirs."""

import base64
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError, UnavailableError
from caraway_kube.api import client
from caraway_kube.api.kinds import ObjectRef
from caraway_kube.resources import manifest_checks
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_management.deployers.kubernetes import objects
from caraway_management.deployers.protocol import RejectedError, RuntimeKey
from caraway_management.domain.deployments import Code, Phase
from tests.management.deployers.kubernetes.deploying import (
    MANIFEST,
    SPACE,
    WANTED,
    deploying,
    pod,
    report,
    stored,
    unschedulable,
)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_DELAYS", Delays(0, 0))


def _refuse(status: int, _verb: str, _ref: ObjectRef) -> tuple[int, str]:
    return status, "not now: token hidden"


async def test_the_operator_takes_what_is_applied() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        spec = CarawayClusterSpec.model_validate(stored(api, "CarawayCluster", "runtime")["spec"])
        assert (spec.scheduler.replicas, spec.executor.replicas) == (2, 3)
        assert spec.image.tag == "1.2.3"
        for component in (spec.scheduler, spec.executor):
            labels = component.node_selector
            assert labels.pop("topology.kubernetes.io/region") == "use1"
            assert list(labels.values()) == ["large"]
        assert spec.executor.cache.size == "50Gi"
        assert [(key.key, key.access) for key in spec.auth.api_keys] == [
            ("key-1", "rw"),
            ("key-2", "rw"),
        ]
        text = stored(api, "ConfigMap", "manifest")["data"]["caraway.yaml"]
        assert text == MANIFEST
        assert not manifest_checks.check_config_map(spec, text).problems
        limits = CarawayLimitsSpec.model_validate(stored(api, "CarawayLimits", "plan")["spec"])
        assert (limits.organization, limits.sql_concurrent_queries) == ("acme", 64)
        secret = stored(api, "Secret", "api-keys")["data"]
        assert base64.b64decode(secret["key-2"]) == b"cwk_two"
        assert api.log.index("PATCH Secret/api-keys") < api.log.index(
            "PATCH CarawayCluster/runtime"
        )


async def test_applying_again_changes_nothing() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        versions = {ref: each["metadata"]["resourceVersion"] for ref, each in api.there.items()}
        await deployer.apply(WANTED)
        assert versions == {
            ref: each["metadata"]["resourceVersion"] for ref, each in api.there.items()
        }


async def test_a_paused_project_is_stopped_and_a_changed_key_leaves_its_cluster_alone() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        generation = stored(api, "CarawayCluster", "runtime")["metadata"]["generation"]
        keys = (RuntimeKey(1, "cwk_new"), RuntimeKey(2, "cwk_two"))
        await deployer.apply(replace(WANTED, api_keys=keys))
        assert stored(api, "CarawayCluster", "runtime")["metadata"]["generation"] == generation
        await deployer.apply(replace(WANTED, is_paused=True))
        assert stored(api, "CarawayCluster", "runtime")["spec"]["stopped"] is True


async def test_the_status_of_the_operator_is_that_of_the_runtime() -> None:
    async with deploying() as (api, deployer):
        assert (await deployer.observe(7)).phase is Phase.ABSENT
        await deployer.apply(WANTED)
        assert (await deployer.observe(7)).phase is Phase.STARTING
        endpoints = {"http": "http://runtime:8090", "flight": "grpc://runtime:50051"}
        report(api, "Ready", endpoints=endpoints)
        seen = await deployer.observe(7)
        assert (seen.phase, seen.deployment_id) == (Phase.READY, 41)
        assert (seen.endpoint, seen.flight_endpoint) == (
            "http://runtime:8090",
            "grpc://runtime:50051",
        )
        await deployer.apply(replace(WANTED, deployment_id=42, config={"replicas": 1}))
        # The operator has not seen the new generation.
        assert (await deployer.observe(7)).phase is Phase.STARTING
        report(api, "Failed", message="manifest.yaml:3: no such source")
        seen = await deployer.observe(7)
        assert seen.problem is not None
        assert (seen.phase, seen.deployment_id) == (Phase.FAILED, 42)
        assert seen.problem.code is Code.UNABLE_TO_START
        assert "no such source" in seen.problem.message


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (unschedulable("0/3 nodes are available: 3 Insufficient cpu."), Code.INSUFFICIENT_CPU),
        (unschedulable("0/3 nodes: 3 Insufficient memory."), Code.INSUFFICIENT_MEMORY),
        (unschedulable("0/3 nodes: 3 Too many pods."), Code.INSUFFICIENT_INSTANCES),
        (
            unschedulable("pod has unbound immediate PersistentVolumeClaims"),
            Code.INSUFFICIENT_STORAGE,
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            Code.UNABLE_TO_START,
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            Code.UNABLE_TO_START,
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, None),
    ],
)
async def test_what_pods_lack_has_a_code(status: dict[str, Any], code: Code | None) -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        report(api, "Creating")
        api.put(pod("runtime-executor-0", status))
        problem = (await deployer.observe(7)).problem
        assert (problem.code if problem else None) is code


async def test_a_pod_that_fits_on_no_node_will_never_start() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        report(api, "Creating")
        api.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1", "namespace": ""},
                "status": {"allocatable": {"cpu": "3800m", "memory": "16Gi"}},
            }
        )
        api.put(pod("runtime-executor-0", unschedulable("1 Insufficient cpu"), cpu="4"))
        problem = (await deployer.observe(7)).problem
        assert problem is not None
        assert problem.code is Code.POD_EXCEEDS_NODE_CAPACITY


async def test_a_namespace_of_somebody_else_is_left_alone() -> None:
    async with deploying() as (api, deployer):
        for labels in ({}, objects.labels(WANTED, "another"), {"app": "shop"}):
            api.put(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": SPACE, "namespace": "", "labels": labels},
                }
            )
            with pytest.raises(RejectedError, match="exists already"):
                await deployer.apply(WANTED)
            await deployer.remove(7)
            assert ObjectRef("Namespace", "", SPACE) in api.there


async def test_the_namespace_of_an_earlier_project_of_the_same_id_is_left_alone() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(replace(WANTED, created=5))
        await deployer.apply(replace(WANTED, created=5))
        before = stored(api, "Secret", "api-keys")["data"]
        with pytest.raises(RejectedError, match="management strays"):
            await deployer.apply(replace(WANTED, created=6, api_keys=()))
        assert stored(api, "Secret", "api-keys")["data"] == before
        assert await deployer.project_ids() == {7}
        # The new project does not see it either, and its deletion leaves it.
        api.put(pod("runtime-executor-0", {"phase": "Running"}))
        assert (await deployer.observe(7, 6)).phase is Phase.ABSENT
        assert list(await deployer.instances(7, 6)) == []
        assert await deployer.logs(7, "runtime-executor-0", 10, 6) is None
        await deployer.remove(7, 6)
        assert (await deployer.observe(7, 5)).phase is not Phase.ABSENT
        assert len(await deployer.instances(7, 5)) == 1
        assert await deployer.logs(7, "runtime-executor-0", 10, 5) is not None
        # As `caraway management strays --remove` does.
        await deployer.remove(7)
        assert ObjectRef("Namespace", "", SPACE) not in api.there


async def test_removing_deletes_the_namespace_once() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        await deployer.remove(7)
        assert ObjectRef("Namespace", "", SPACE) not in api.there
        await deployer.remove(7)
        assert api.log.count(f"DELETE Namespace/{SPACE}") == 1


async def test_a_namespace_that_is_being_deleted_is_waited_for() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        space = stored(api, "Namespace", SPACE, "")
        space["metadata"]["deletionTimestamp"] = "2026-11-26T12:00:00Z"
        with pytest.raises(UnavailableError):
            await deployer.apply(WANTED)


async def test_an_api_that_is_away_or_forbids_is_waited_for() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        for status in (403, 500, 503):
            api.refuse = partial(_refuse, status)
            with pytest.raises(UnavailableError) as caught:
                await deployer.apply(WANTED)
            assert "hidden" not in str(caught.value)
            with pytest.raises(UnavailableError):
                await deployer.observe(7)
        api.refuse = lambda verb, ref: (422, "invalid") if ref.kind == "CarawayCluster" else None
        with pytest.raises(RejectedError):
            await deployer.apply(WANTED)


async def test_instances_are_pods_and_only_their_logs_are_read() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        ready = {"phase": "Running", "startTime": "2026-11-26T12:00:00Z",
                 "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
        api.put(pod("runtime-scheduler-a", ready))
        api.put(pod("runtime-executor-b", {"phase": "Pending"}))
        assert [(each.name, each.status) for each in await deployer.instances(7)] == [
            ("runtime-executor-b", "pending"),
            ("runtime-scheduler-a", "ready"),
        ]
        assert await deployer.logs(7, "../secrets", 10) is None


@pytest.mark.parametrize("name", ["", "Caraway", "a" * 41, "-a", "a-", "../a", "a.b"])
async def test_namespaces_cannot_begin_with_every_name(name: str) -> None:
    with pytest.raises(CarawayError, match="--installation"):
        async with deploying(name):
            pass
