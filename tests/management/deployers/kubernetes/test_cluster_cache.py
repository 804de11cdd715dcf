"""Clusters as a watch reports them, and the deployments that hear of it."""

import asyncio

from caraway_kube.api.kinds import CLUSTER, Object, ObjectRef
from caraway_management.deployers.kubernetes.cluster_cache import ClusterCache
from caraway_management.deployers.kubernetes.objects import DEPLOYMENT_ANNOTATION


def cluster(namespace: str, version: str, deployment: str = "7", uid: str = "u1") -> Object:
    return {
        "metadata": {
            "namespace": namespace, "name": "c", "uid": uid, "resourceVersion": version,
            "annotations": {DEPLOYMENT_ANNOTATION: deployment}, "managedFields": [{"manager": "m"}],
        }
    }  # fmt: skip


def ref(namespace: str) -> ObjectRef:
    return ObjectRef("CarawayCluster", namespace, "c")


def version(cache: ClusterCache, namespace: str = "a") -> str | None:
    found = cache.get(namespace)
    return None if found is None else found["metadata"]["resourceVersion"]


async def test_a_stored_cluster_is_there_and_its_deployment_hears_of_it() -> None:
    cache = ClusterCache()
    assert cache.get("a") is None
    cache.put(cluster("a", "1"))
    found = cache.get("a")
    assert found is not None and "managedFields" not in found["metadata"]
    assert await cache.changed() == {7}


async def test_an_older_version_changes_nothing() -> None:
    cache = ClusterCache()
    cache.put(cluster("a", "9"))
    await cache.changed()
    for late in ("9", "8"):
        cache.put(cluster("a", late))
    assert version(cache) == "9"
    cache.put(cluster("a", "10"))
    assert version(cache) == "10", "versions are compared as numbers"


async def test_another_cluster_of_the_name_replaces_it_whatever_its_version_is() -> None:
    cache = ClusterCache()
    cache.put(cluster("a", "9"))
    cache.put(cluster("a", "3", deployment="8", uid="u2"))
    assert version(cache) == "3"
    assert await cache.changed() == {7, 8}


async def test_a_late_deletion_keeps_the_cluster_that_has_its_place() -> None:
    cache = ClusterCache()
    cache.put(cluster("a", "9", uid="u2"))
    cache.drop(ref("a"), "u1")
    cache.drop(ref("b"))
    assert version(cache) == "9"
    cache.drop(ref("a"), "u2")
    assert cache.get("a") is None


async def test_a_list_removes_what_it_does_not_have() -> None:
    cache = ClusterCache()
    cache.put(cluster("a", "1", deployment="1"))
    cache.put(cluster("b", "1", deployment="2"))
    await cache.changed()
    cache.replace(CLUSTER, None, [cluster("b", "2", deployment="2"), cluster("c", "1", "3")])
    assert [version(cache, each) for each in "abc"] == [None, "2", "1"]
    assert await cache.changed() == {1, 2, 3}


async def test_changes_are_waited_for_and_told_once() -> None:
    cache = ClusterCache()
    cache.put(cluster("a", "1", deployment="by hand"))
    waiting = asyncio.ensure_future(cache.changed())
    await asyncio.sleep(0)
    assert not waiting.done(), "a cluster without a deployment is nobody's news"
    cache.put(cluster("a", "2", deployment="5"))
    assert await waiting == {5}
