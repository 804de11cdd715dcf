"""Drives a reconciler by hand against the emulated API, without watches and without real time."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CLUSTER, LIMITS, WATCHED, Object
from caraway_kube.naming import OPERATOR
from caraway_operator.kube.events import EventRecorder
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.reconciling.reconcile import Reconciler, ReconcileResult
from caraway_operator.scheduler_client import (
    ExecutorView,
    OperatorRefusedError,
    PartView,
    SchedulerClientError,
    SchedulerEndpoint,
    SchedulerLoad,
)
from caraway_operator.watching.resource_cache import ResourceCache
from tests.kit.clocks import Clock
from tests.kit.kube import Emulator, emulated
from tests.kit.kube_controllers import Controllers

MANIFEST = {
    "version": "v1",
    "kind": "Caraway",
    "name": "shop",
    "datasets": [{"from": "memory:numbers", "name": "numbers"}],
}


@dataclass
class FakeSchedulerClient:
    """Schedulers whose executors are the emulated pods, and which drain at once."""

    emulator: Emulator
    asked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Drains that were requested while the schedulers refuse the operator."""
    drains: dict[str, str] = field(default_factory=dict)
    """Draining executors with the uid of their pod. A new pod is not draining."""
    busy: set[str] = field(default_factory=set)
    waiting: int = 0
    is_away: bool = False
    refuses: Callable[[], str] = lambda: ""
    """Returns why the schedulers refuse the operator, or ''."""
    parts: list[PartView] = field(default_factory=list)

    @property
    def draining(self) -> set[str]:
        uids = {name: self.emulator.get("Pod", name)["metadata"]["uid"] for name in self._names()}
        return {name for name, uid in uids.items() if self.drains.get(name) == uid}

    async def executors(self, endpoint: SchedulerEndpoint) -> Sequence[ExecutorView]:
        self._check()
        draining = self.draining
        return [
            ExecutorView(
                name,
                is_ready=self._is_ready(name) and name not in draining,
                is_draining=name in draining,
                is_drained=name in draining and name not in self.busy,
            )
            for name in self._names()
        ]

    async def load(self, endpoint: SchedulerEndpoint) -> SchedulerLoad:
        self._check()
        return SchedulerLoad(self.waiting, 1)

    async def drain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        if self.refuses():
            self.refused.append(f"drain {executor}")
        self._check()
        if executor not in self._names():
            # The StatefulSet was edited, and its controller has not created the pod yet.
            raise SchedulerClientError(f"404: there is no executor {executor}")
        if executor not in self.draining:
            self.asked.append(f"drain {executor}")
        self.drains[executor] = self.emulator.get("Pod", executor)["metadata"]["uid"]

    async def undrain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        self._check()
        self.asked.append(f"undo {executor}")
        self.drains.pop(executor, None)

    async def is_ready(self, endpoint: SchedulerEndpoint, min_ready: int) -> bool:
        self._check()
        return sum(view.is_ready for view in await self.executors(endpoint)) >= min_ready

    async def unready_parts(self, endpoint: SchedulerEndpoint) -> Sequence[PartView]:
        self._check()
        return self.parts

    def _names(self) -> list[str]:
        return [name for name in self.emulator.names("Pod") if "-executor-" in name]

    def _is_ready(self, name: str) -> bool:
        conditions = self.emulator.get("Pod", name)["status"].get("conditions") or ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _check(self) -> None:
        if self.is_away:
            raise SchedulerClientError("no scheduler answers")
        if reason := self.refuses():
            raise OperatorRefusedError(reason)


@dataclass
class Harness:
    """A reconciler, and everything around it that tests use."""

    api: Emulator
    kube: KubeClient
    schedulers: FakeSchedulerClient
    clock: Clock
    controllers: Controllers
    resources: ResourceCache = field(default_factory=ResourceCache)
    objects: ObjectCache = field(default_factory=ObjectCache)
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Drop all caches, as a new process of the operator would."""
        self.resources, self.objects = ResourceCache(), ObjectCache()
        recorder = EventRecorder(self.kube, "test", self.clock)
        self.reconciler = Reconciler(
            self.kube, self.schedulers, self.objects, self.resources, recorder, self.clock, "1.0.0"
        )

    def create(self, name: str = "shop", **spec: Any) -> Object:
        body = {"manifest": MANIFEST, **spec}
        return self.api.put(
            {
                "apiVersion": CLUSTER.api_version,
                "kind": CLUSTER.name,
                "metadata": {"name": name, "namespace": self.api.home},
                "spec": body,
            }
        )

    def change(self, name: str = "shop", **spec: Any) -> None:
        self.api.edit(CLUSTER.name, name, spec=spec)

    def cluster(self, name: str = "shop") -> Object:
        return self.api.get(CLUSTER.name, name)

    def status(self, name: str = "shop") -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.cluster(name).get("status") or {}
        return found

    def condition(self, type_: str, name: str = "shop") -> Mapping[str, Any]:
        return next(each for each in self.status(name)["conditions"] if each["type"] == type_)

    def replicas(self) -> int:
        found: int = self.api.get("StatefulSet", "shop-executor")["spec"]["replicas"]
        return found

    async def reconcile(self, name: str = "shop") -> ReconcileResult:
        """Fill the caches from the API, and reconcile a cluster once."""
        await self.observe()
        return await self.reconcile_observed(name)

    async def reconcile_observed(self, name: str = "shop") -> ReconcileResult:
        """Reconcile a cluster once, with the caches as they are."""
        return await self.reconciler.reconcile(self.resources.clusters[self.api.home, name])

    async def observe(self) -> None:
        """Fill the caches from the API, as the watches would."""
        for kind in WATCHED:
            listing = await self.kube.list(kind, None, "app.kubernetes.io/name=caraway")
            self.objects.replace(kind, None, listing.items)
        for cluster in (await self.kube.list(CLUSTER, None)).items:
            self.resources.put_cluster(cluster)
        self.resources.limits = {
            (self.api.home, each["metadata"]["name"]): each
            for each in (await self.kube.list(LIMITS, None)).items
        }

    async def step(self, name: str = "shop") -> ReconcileResult:
        """Reconcile once, then let the controllers of Kubernetes act."""
        outcome = await self.reconcile(name)
        self.controllers.step()
        self.clock.now += outcome.requeue_after_s
        return outcome

    async def settle(self, rounds: int = 40, name: str = "shop") -> None:
        """Reconcile until nothing is written any more."""
        for _ in range(rounds):
            before = self.api.version
            await self.step(name)
            if self.api.version == before:
                return
        raise AssertionError(f"still writing after {rounds} rounds: {self.api.log[-5:]}")


@asynccontextmanager
async def harness() -> AsyncIterator[Harness]:
    """Run an empty API, and a reconciler that uses it."""
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        yield Harness(api, kube, FakeSchedulerClient(api), Clock(1_000_000.0), Controllers(api))
