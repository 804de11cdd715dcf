import time

import kopf

from caraway_operator import handlers
from caraway_operator.controller import Controller
from caraway_operator.handlers import clusters, events, limits
from caraway_operator.known import Key, Known
from caraway_operator.kube.kinds import CLUSTER, Object


class Poked(Controller):
    """Remembers who was to be looked at."""

    def __init__(self) -> None:
        super().__init__(self._never, time.monotonic)
        self.poked: list[Key] = []

    async def _never(self, which: Key) -> float | None:
        raise AssertionError(which)

    def poke(self, namespace: str, name: str, after_s: float = 0.0) -> None:
        self.poked.append((namespace, name))


def cluster(uid: str = "u-1", version: str = "1") -> Object:
    metadata = {"name": "shop", "namespace": "web", "uid": uid, "resourceVersion": version}
    return {"metadata": metadata, "spec": {}}


async def test_a_change_of_a_cluster_has_it_looked_at() -> None:
    known, poked = Known(), Poked()

    clusters.take(known, poked, None, cluster())
    clusters.take(known, poked, "MODIFIED", cluster(version="2"))

    assert poked.poked == [("web", "shop")] * 2
    assert known.clusters["web", "shop"]["metadata"]["resourceVersion"] == "2"


async def test_the_end_of_a_cluster_is_noticed_unless_another_took_its_name() -> None:
    known, poked = Known(), Poked()
    clusters.take(known, poked, "ADDED", cluster("new", "9"))

    clusters.take(known, poked, "DELETED", cluster("old"))
    assert known.clusters
    clusters.take(known, poked, "DELETED", cluster("new"))

    assert not known.clusters
    assert len(poked.poked) == 3


async def test_limits_concern_every_cluster_of_their_namespace() -> None:
    known, poked = Known(), Poked()
    clusters.take(known, poked, None, cluster())
    plan = {"metadata": {"name": "plan", "namespace": "web"}, "spec": {}}
    elsewhere = {"metadata": {"name": "plan", "namespace": "other"}, "spec": {}}
    poked.poked.clear()

    limits.take(known, poked, "ADDED", plan)
    limits.take(known, poked, "ADDED", elsewhere)
    limits.take(known, poked, "DELETED", plan)

    assert poked.poked == [("web", "shop")] * 2
    assert list(known.limits) == [("other", "plan")]


async def test_kopf_is_asked_for_events_only_so_that_it_writes_nothing() -> None:
    registry = kopf.OperatorRegistry()

    handlers.register(registry, Known(), Poked())

    assert len(registry._watching.get_all_handlers()) == 2
    assert not registry._changing.get_all_handlers()
    assert not registry._spawning.get_all_handlers()


def test_objects_come_without_what_nobody_looks_at() -> None:
    body = {"metadata": {"name": "shop", "managedFields": ["much"]}, "spec": {"a": 1}}

    assert events.plain(body, CLUSTER) == {
        "apiVersion": "caraway.dev/v1alpha1",
        "kind": "CarawayCluster",
        "metadata": {"name": "shop"},
        "spec": {"a": 1},
    }
