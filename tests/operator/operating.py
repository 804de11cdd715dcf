"""An operator process that runs against an emulated Kubernetes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import CLUSTER, ResourceKind
from caraway_kube.naming import OPERATOR
from caraway_operator.operating import Operator
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated
from tests.kit.kube_controllers import Controllers
from tests.operator.harness import MANIFEST, FakeSchedulerClient


@dataclass
class Running:
    api: Emulator
    operator: Operator

    def create(self, name: str = "shop") -> None:
        self.api.put(
            {
                "apiVersion": CLUSTER.api_version,
                "kind": CLUSTER.name,
                "metadata": {"name": name, "namespace": "web"},
                "spec": {"manifest": MANIFEST},
            }
        )

    async def until(self, phase: str, name: str = "shop") -> None:
        async def look() -> bool:
            status = self.api.get(CLUSTER.name, name).get("status") or {}
            return bool(status.get("phase") == phase)

        await eventually(look, f"{name} is {phase}")


@asynccontextmanager
async def running(
    *namespaces: str, optional: Sequence[ResourceKind] = ()
) -> AsyncIterator[Running]:
    """Run the operator, and the controllers of Kubernetes after every change."""
    async with (
        emulated() as api,
        client.open_client(access := ApiAccess(str(api.url)), OPERATOR) as kube,
    ):
        for kind in optional:
            api.serve(kind)
        controllers, acting = Controllers(api), False

        def changed() -> None:
            nonlocal acting
            if not acting:
                acting = True
                asyncio.get_running_loop().call_soon(act)

        def act() -> None:
            nonlocal acting
            controllers.settle()
            acting = False

        api.changed = changed
        operator = Operator(access, kube, FakeSchedulerClient(api), "me", "1.0.0", namespaces)
        task = asyncio.create_task(operator.run_operator())
        try:
            yield Running(api, operator)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
