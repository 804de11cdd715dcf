"""The way of a project on an emulated Kubernetes API, with the real operator's reconciler.

The management service applies and watches, the operator reconciles, the controllers and the kubelet
of Kubernetes are emulated, and requests that pass through reach a runtime with the pods' own keys.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_kube.api import client, watching
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import CLUSTER, ObjectRef
from caraway_kube.naming import OPERATOR
from caraway_management import composition
from caraway_management.deployers.kubernetes.deployer import KubernetesDeployer
from caraway_management.deployers.kubernetes.objects import MANAGER
from caraway_management.deployments.working import DeploymentWork
from caraway_management.outbox import Worker
from caraway_management.passthrough.passing import Passthrough
from caraway_management.passthrough.runtimes import Runtimes
from caraway_management.services import Services
from caraway_management.store.database import Database
from tests.kit import deadlines, management
from tests.kit.clocks import Clock
from tests.kit.deployed_projects import DeployedProject, new_project
from tests.kit.fake_runtime import FakeRuntime
from tests.kit.kube import Emulator, emulated
from tests.kit.kube_controllers import Controllers
from tests.kit.kubelet_secrets import Kubelet
from tests.kit.management import Installation
from tests.operator.harness import FakeSchedulerClient, Harness

_INSTALLATION = "caraway"
_MANIFEST = "version: v1\nkind: Caraway\nname: shop\ndatasets: [{from: 'memory:a', name: a}]\n"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(watching, "_DELAYS", Delays(0.01, 0.02))


@dataclass
class World:
    """A management service, Kubernetes, and a project."""

    installation: Installation
    services: Services
    worker: Worker
    api: Emulator
    operator: Harness
    kubelet: Kubelet
    runtime: FakeRuntime
    project: DeployedProject

    @property
    def deployer(self) -> KubernetesDeployer:
        assert isinstance(self.services.deployer, KubernetesDeployer)
        return self.services.deployer

    async def work(self) -> None:
        """Do what the service has to do now."""
        while await self.worker.run_once():
            pass

    async def operate(self) -> None:
        """Let the operator and Kubernetes act until nothing changes any more."""
        await self.operator.settle(name="runtime")
        self.kubelet.step()

    async def ended(self, deployment: int) -> dict[str, object]:
        """Work until a deployment has ended, as soon as the watch reports it: no time passes."""

        async def look() -> bool:
            await self.work()
            return self.project.deployment(deployment)["status"] not in ("queued", "in_progress")

        await deadlines.eventually(look, "the end of the deployment")
        return self.project.deployment(deployment)

    def status_with(self, key: str) -> int:
        """Return how the runtime answers a request with a key."""
        request = httpx.Request("GET", "http://runtime/v1/queries", headers={"x-api-key": key})
        return self._answer(request).status_code

    def passed_through(self) -> int:
        return self.project.caller.get(f"{self.project.path}/queries").status_code

    def keys(self) -> dict[str, str]:
        found: dict[str, str] = self.project.caller.get(f"{self.project.path}/api-keys").json()
        return found

    def _answer(self, request: httpx.Request) -> httpx.Response:
        is_known = request.headers.get("x-api-key") in self.kubelet.keys
        return httpx.Response(200 if is_known else 401, json={"queries": []})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Installation]:
    """A management service; its routes run on a loop of their own."""
    url = management.prepared_embedded_url(tmp_path)
    with management.installation(url, is_prepared=True) as made:
        yield made


@asynccontextmanager
async def world(installation: Installation) -> AsyncIterator[World]:
    """Run everything, with the background work of the service on the loop of the test."""
    runtime = FakeRuntime()
    app: Any = installation.client.app
    app.state.passthrough = Passthrough(Runtimes(runtime))
    project = new_project(installation, manifest=_MANIFEST, replicas=2)
    database = Database(installation.services.database.url)
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), MANAGER) as kube,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as operating,
    ):
        api.home = f"{_INSTALLATION}-{project.id}"
        services = replace(
            installation.services, database=database,
            deployer=KubernetesDeployer(kube, _INSTALLATION),
        )  # fmt: skip
        operator = Harness(
            api, operating, FakeSchedulerClient(api), Clock(1_000_000.0), Controllers(api)
        )
        made = World(
            installation, services,
            Worker(database, services.now, composition.handlers(services)),
            api, operator, Kubelet(api), runtime, project,
        )  # fmt: skip
        runtime.answer = made._answer
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(services.deployer.run()),
                group.create_task(DeploymentWork(services).run_wakeups()),
            ]
            try:
                yield made
            finally:
                for task in background:
                    task.cancel()
    await database.close()


async def test_a_project_from_its_deployment_to_its_deletion(service: Installation) -> None:
    async with world(service) as at:
        deployment = at.project.deploy()
        await at.work()
        assert at.project.state(deployment) == ("in_progress", None)
        await at.operate()
        assert (await at.ended(deployment))["status"] == "succeeded"
        assert at.passed_through() == 200
        assert at.runtime.last.url.host == f"runtime.{at.api.home}.svc"
        assert len(at.kubelet.uids) == 2

        pods, old = at.kubelet.uids, at.keys()
        assert [at.status_with(key) for key in old.values()] == [200, 200]
        at.project.caller.post(f"{at.project.path}/api-keys", {"key_number": 1})
        await at.work()
        # One look of the operator, which is called for the change of the cluster. No time passes.
        await at.operator.reconcile("runtime")
        at.kubelet.step()
        new = at.keys()
        assert [at.status_with(each) for each in (new["api_key"], new["api_key_2"])] == [200, 200]
        assert at.status_with(old["api_key"]) == 401
        assert at.passed_through() == 200
        await at.operate()
        assert at.kubelet.uids == pods

        assert at.project.caller.post(f"{at.project.path}/pause").status_code == 200
        await at.work()
        await at.operate()
        assert (at.kubelet.uids, at.passed_through()) == (set(), 409)
        resumed = at.project.caller.post(f"{at.project.path}/resume").json()["deployment_id"]
        await at.work()
        await at.operate()
        assert (await at.ended(resumed))["status"] == "succeeded"
        assert (at.passed_through(), at.status_with(new["api_key"])) == (200, 200)

        assert at.project.caller.delete(at.project.path).status_code == 204
        await at.work()
        assert ObjectRef("Namespace", "", at.api.home) not in at.api.there


async def test_an_api_that_is_away_for_five_minutes_fails_no_deployment(
    service: Installation,
) -> None:
    async with world(service) as at:
        first = at.project.deploy()
        await at.work()
        await at.operate()
        await at.ended(first)
        at.api.go_away()
        second = at.project.deploy()
        for _ in range(30):
            await at.work()
            at.installation.clock.advance(seconds=10)
            assert at.project.state(second) in (("queued", None), ("in_progress", None))
        # The last runtime goes on.
        assert at.passed_through() == 200
        at.api.is_away = False
        at.installation.clock.advance(seconds=75)
        await at.work()
        await at.operate()
        assert (await at.ended(second))["status"] == "succeeded"


async def test_a_watch_that_has_expired_lists_again(service: Installation) -> None:
    async with world(service) as at:
        deployment = at.project.deploy()
        await at.work()
        await deadlines.eventually(_is_watching(at), "the watch")
        at.api.expire()
        await at.operate()
        assert (await at.ended(deployment))["status"] == "succeeded"


async def test_while_the_watch_works_the_cluster_is_not_asked_for(service: Installation) -> None:
    async with world(service) as at:
        await deadlines.eventually(_is_watching(at), "the watch")
        deployment = at.project.deploy()
        await at.work()
        await at.operate()
        at.api.used.clear()
        await at.ended(deployment)
        await at.deployer.observe(at.project.id)
        assert (CLUSTER.group, CLUSTER.plural, "get") not in at.api.used
        at.api.go_away()
        await deadlines.eventually(_is_blind(at), "the end of the watch")
        at.api.is_away = False
        at.api.used.clear()
        await at.deployer.observe(at.project.id)
        assert (CLUSTER.group, CLUSTER.plural, "get") in at.api.used


async def test_a_namespace_of_something_else_ends_the_deployment(service: Installation) -> None:
    async with world(service) as at:
        at.api.put(
            {"apiVersion": "v1", "kind": "Namespace",
             "metadata": {"name": at.api.home, "namespace": "", "labels": {"app": "shop"}}}
        )  # fmt: skip
        ended = await at.ended(at.project.deploy())
        assert (ended["status"], ended["error_code"]) == ("failed", "unable_to_start")
        assert "exists already" in str(ended["error_message"])
        assert at.api.names("CarawayCluster") == []


async def test_a_cluster_that_never_becomes_ready_says_why_and_fails_with_its_reason(
    service: Installation,
) -> None:
    async with world(service) as at:
        at.operator.controllers.ill = lambda pod: {"waiting": {"reason": "ContainerCreating"}}
        deployment = at.project.deploy()
        await at.work()
        await at.operator.step("runtime")
        # Time alone fails no deployment. Its objects are applied again after 15 minutes.
        applied = at.api.log.count("PATCH CarawayCluster/runtime")
        for _ in range(20):
            at.installation.clock.advance(minutes=1)
            await at.work()
        assert at.project.state(deployment) == ("in_progress", None)
        assert at.api.log.count("PATCH CarawayCluster/runtime") > applied
        at.operator.controllers.ill = lambda pod: {"waiting": {"reason": "ImagePullBackOff"}}
        for _ in range(3):
            await at.operator.step("runtime")
        at.installation.clock.advance(minutes=1)
        ended = await at.ended(deployment)
        assert (ended["status"], ended["error_code"]) == ("failed", "unable_to_start")
        assert "ImagePullBackOff" in str(ended["error_message"])


def _is_watching(at: World) -> Any:
    async def look() -> bool:
        return at.deployer.is_watching

    return look


def _is_blind(at: World) -> Any:
    async def look() -> bool:
        return not at.deployer.is_watching

    return look
