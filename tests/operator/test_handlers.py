import time

import kopf

from caraway_kube.api.kinds import CLUSTER, Object
from caraway_operator import handlers
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import Key, ResourceCache


class RecordingController(Controller):
    """Records the enqueued clusters."""

    def __init__(self) -> None:
        super().__init__(self._never, time.monotonic)
        self.poked: list[Key] = []

    async def _never(self, which: Key) -> float | None:
        raise AssertionError(which)

    def enqueue(self, namespace: str, name: str, after_s: float = 0.0) -> None:
        self.poked.append((namespace, name))


def cluster(uid: str = "u-1", version: str = "1") -> Object:
    metadata = {"name": "shop", "namespace": "web", "uid": uid, "resourceVersion": version}
    return {"metadata": metadata, "spec": {}}


async def test_a_changed_cluster_is_enqueued() -> None:
    resources, poked = ResourceCache(), RecordingController()

    handlers.handle_cluster(resources, poked, None, cluster())
    handlers.handle_cluster(resources, poked, "MODIFIED", cluster(version="2"))

    assert poked.poked == [("web", "shop")] * 2
    assert resources.clusters["web", "shop"]["metadata"]["resourceVersion"] == "2"


async def test_a_deleted_cluster_is_removed_unless_another_one_has_its_name() -> None:
    resources, poked = ResourceCache(), RecordingController()
    handlers.handle_cluster(resources, poked, "ADDED", cluster("new", "9"))

    handlers.handle_cluster(resources, poked, "DELETED", cluster("old"))
    assert resources.clusters
    handlers.handle_cluster(resources, poked, "DELETED", cluster("new"))

    assert not resources.clusters
    assert len(poked.poked) == 3


async def test_changed_limits_enqueue_every_cluster_of_their_namespace() -> None:
    resources, poked = ResourceCache(), RecordingController()
    handlers.handle_cluster(resources, poked, None, cluster())
    plan = {"metadata": {"name": "plan", "namespace": "web"}, "spec": {}}
    elsewhere = {"metadata": {"name": "plan", "namespace": "other"}, "spec": {}}
    poked.poked.clear()

    handlers.handle_limits(resources, poked, "ADDED", plan)
    handlers.handle_limits(resources, poked, "ADDED", elsewhere)
    handlers.handle_limits(resources, poked, "DELETED", plan)

    assert poked.poked == [("web", "shop")] * 2
    assert list(resources.limits) == [("other", "plan")]


async def test_only_event_handlers_are_registered_so_kopf_writes_nothing() -> None:
    registry = kopf.OperatorRegistry()

    handlers.register_handlers(registry, ResourceCache(), RecordingController())

    assert len(registry._watching.get_all_handlers()) == 2
    assert not registry._changing.get_all_handlers()
    assert not registry._spawning.get_all_handlers()


def test_managed_fields_are_removed() -> None:
    body = {"metadata": {"name": "shop", "managedFields": ["much"]}, "spec": {"a": 1}}

    assert handlers.plain_object(body, CLUSTER) == {
        "apiVersion": "caraway.dev/v1alpha1",
        "kind": "CarawayCluster",
        "metadata": {"name": "shop"},
        "spec": {"a": 1},
    }
