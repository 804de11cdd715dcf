"""The whole operator, kopf and watches included, against the emulated API."""

import asyncio

import pytest

from caraway_core.errors import CarawayError
from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import CLUSTER
from caraway_kube.naming import OPERATOR
from caraway_operator.operating import Operator
from caraway_operator.watching.controller import Controller
from tests.kit.deadlines import eventually
from tests.kit.kube import emulated
from tests.operator.harness import FakeSchedulerClient
from tests.operator.operating import running


async def test_clusters_are_created_changed_repaired_and_forgotten() -> None:
    async with running() as at:
        at.create()
        await at.until("Ready")

        at.api.edit(CLUSTER.name, "shop", spec={"executor": {"replicas": 3}})

        async def has_three() -> bool:
            return bool(at.api.get(CLUSTER.name, "shop")["status"]["executorsReady"] == "3/3")

        await eventually(has_three, "there are three executors")
        at.api.remove("Service", "shop-executor")

        async def is_back() -> bool:
            return "shop-executor" in at.api.names("Service")

        await eventually(is_back, "the Service is made again")
        at.api.remove(CLUSTER.name, "shop")

        async def is_forgotten() -> bool:
            # The spec keeps the volumes.
            left = {which.kind for which in at.operator.objects.of_cluster("web", "shop")}
            return not at.operator.resources.clusters and left <= {"PersistentVolumeClaim"}

        await eventually(is_forgotten, "nothing is known of the cluster any more")
        assert not at.api.names("StatefulSet")


async def test_limits_from_config_maps_and_resources_apply() -> None:
    async with running() as at:
        labels = {"caraway.dev/limits": "true"}
        made = {"kind": "ConfigMap", "metadata": {"name": "plan", "labels": labels}}
        at.api.put({**made, "data": {"limits.yaml": "replicas: 1"}})
        at.create()
        await at.until("Ready")
        assert at.api.get(CLUSTER.name, "shop")["status"]["executorsReady"] == "1/1"

        at.api.put({"kind": "CarawayLimits", "metadata": {"name": "more"}, "spec": {"apps": 5}})
        at.api.remove("ConfigMap", "plan")

        async def has_two() -> bool:
            return bool(at.api.get(CLUSTER.name, "shop")["status"]["executorsReady"] == "2/2")

        await eventually(has_two, "there are two executors")


async def test_kopf_writes_nothing_of_its_own() -> None:
    async with running() as at:
        at.create()
        await at.until("Ready")

        metadata = at.api.get(CLUSTER.name, "shop")["metadata"]

    assert "finalizers" not in metadata
    assert "annotations" not in metadata


async def test_resources_deleted_while_a_watch_was_broken_are_forgotten() -> None:
    async with (
        emulated() as api,
        client.open_client(access := ApiAccess(str(api.url)), OPERATOR) as kube,
    ):
        operator = Operator(access, kube, FakeSchedulerClient(api), "me", "1.0.0")
        there = api.put({"kind": "CarawayCluster", "metadata": {"name": "there"}, "spec": {}})
        ghost = {"metadata": {"namespace": "web", "name": "ghost", "resourceVersion": "1"}}
        operator.resources.put_cluster(there)
        operator.resources.put_cluster(ghost)
        operator.resources.limits |= {("web", "plan"): ghost, ("web", "ConfigMap/plan"): ghost}
        poked: list[tuple[str, str]] = []
        controller = Controller(lambda _: asyncio.sleep(0), lambda: 0.0)
        controller.enqueue = lambda *which: poked.append(which[:2])  # type: ignore[method-assign]

        await operator.forget_missing(controller)

        assert set(operator.resources.clusters) == {("web", "there")}
        # The watch of ConfigMaps lists again by itself.
        assert set(operator.resources.limits) == {("web", "ConfigMap/plan")}
        assert poked == [("web", "ghost"), ("web", "there")]


async def test_a_deleted_namespace_does_not_stop_the_others() -> None:
    async with running("web", "gone") as at:
        at.api.refuse = lambda _, which: (403, "forbidden") if which.namespace == "gone" else None
        at.create()
        await at.until("Ready")
        await at.operator.check_skipped()

        at.api.refuse = lambda _verb, _which: None

        with pytest.raises(CarawayError, match="namespace 'gone' can be read now"):
            await at.operator.check_skipped()


async def test_existing_clusters_are_reconciled() -> None:
    async with running("web") as at:
        at.create("one")
        at.create("two")

        await at.until("Ready", "one")
        await at.until("Ready", "two")
