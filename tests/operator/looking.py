"""A reconciler over the emulated API, looked with by hand: no watch, no waiting, no real clock."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from caraway_operator.known import Known
from caraway_operator.kube import client
from caraway_operator.kube.access import Access
from caraway_operator.kube.client import Kube
from caraway_operator.kube.events import Recorder
from caraway_operator.kube.kinds import CLUSTER, LIMITS, WATCHED, Object
from caraway_operator.kube.objects import Objects
from caraway_operator.reconcile import Outcome, Reconciler
from caraway_operator.scheduler_link import ExecutorView, LinkError, Load, Target
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
class FakeLink:
    """Schedulers that see executors as the emulated pods are, and drain at once."""

    emulator: Emulator
    asked: list[str] = field(default_factory=list)
    wishes: dict[str, str] = field(default_factory=dict)
    """Executors that shall drain, each with the uid of its pod: one made anew works again."""
    busy: set[str] = field(default_factory=set)
    waiting: int = 0
    is_away: bool = False

    @property
    def draining(self) -> set[str]:
        uids = {name: self.emulator.get("Pod", name)["metadata"]["uid"] for name in self._names()}
        return {name for name, uid in uids.items() if self.wishes.get(name) == uid}

    async def executors(self, target: Target) -> Sequence[ExecutorView]:
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

    async def load(self, target: Target) -> Load:
        self._check()
        return Load(self.waiting, 1)

    async def drain(self, target: Target, executor: str) -> None:
        self._check()
        if executor not in self._names():
            # A set was asked for more pods by hand, and its controller has not made them.
            raise LinkError(f"404: there is no executor {executor}")
        if executor not in self.draining:
            self.asked.append(f"drain {executor}")
        self.wishes[executor] = self.emulator.get("Pod", executor)["metadata"]["uid"]

    async def undrain(self, target: Target, executor: str) -> None:
        self._check()
        self.asked.append(f"undo {executor}")
        self.wishes.pop(executor, None)

    async def is_ready(self, target: Target, min_ready: int) -> bool:
        self._check()
        return sum(view.is_ready for view in await self.executors(target)) >= min_ready

    def _names(self) -> list[str]:
        return [name for name in self.emulator.names("Pod") if "-executor-" in name]

    def _is_ready(self, name: str) -> bool:
        conditions = self.emulator.get("Pod", name)["status"].get("conditions") or ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _check(self) -> None:
        if self.is_away:
            raise LinkError("no scheduler answers")


@dataclass
class Bench:
    """Everything that a test of the reconciler touches."""

    api: Emulator
    kube: Kube
    link: FakeLink
    clock: Clock
    controllers: Controllers
    known: Known = field(default_factory=Known)
    objects: Objects = field(default_factory=Objects)
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew, as a new process of the operator does."""
        self.known, self.objects = Known(), Objects()
        recorder = Recorder(self.kube, "test", self.clock)
        self.reconciler = Reconciler(
            self.kube, self.link, self.objects, self.known, recorder, self.clock, "1.0.0"
        )

    def create(self, name: str = "shop", **spec: Any) -> Object:
        body = {"manifest": MANIFEST, **spec}
        return self.api.put(
            {
                "apiVersion": CLUSTER.api_version,
                "kind": CLUSTER.name,
                "metadata": {"name": name, "namespace": "web"},
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

    async def look(self, name: str = "shop") -> Outcome:
        """See what there is, and reconcile once."""
        for kind in WATCHED:
            listing = await self.kube.list(kind, None, "app.kubernetes.io/name=caraway")
            self.objects.replace(kind, None, listing.items)
        for cluster in (await self.kube.list(CLUSTER, None)).items:
            self.known.put_cluster(cluster)
        self.known.limits = {
            ("web", each["metadata"]["name"]): each
            for each in (await self.kube.list(LIMITS, None)).items
        }
        return await self.reconciler.reconcile(self.known.clusters["web", name])

    async def turn(self, name: str = "shop") -> Outcome:
        """Reconcile once, and let Kubernetes do its part."""
        outcome = await self.look(name)
        self.controllers.step()
        self.clock.now += outcome.again_s
        return outcome

    async def settle(self, turns: int = 40, name: str = "shop") -> None:
        """Take turns until nothing is written any more."""
        for _ in range(turns):
            before = self.api.version
            await self.turn(name)
            if self.api.version == before:
                return
        raise AssertionError(f"still writing after {turns} turns: {self.api.log[-5:]}")


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """Serve an empty API, and a reconciler that reaches it."""
    async with emulated() as api, client.connected(Access(str(api.url).rstrip("/"))) as kube:
        yield Bench(api, kube, FakeLink(api), Clock(1_000_000.0), Controllers(api))
