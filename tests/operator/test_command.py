"""`caraway operator` as a process of its own, against the emulated API."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from caraway_operator.kube.kinds import CLUSTER
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated
from tests.kit.kube_controllers import Controllers
from tests.operator.looking import MANIFEST

CARAWAY = [sys.executable, "-c", "from caraway.cli import main; main()"]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Child:
    """An operator, and where it says how it is."""

    process: asyncio.subprocess.Process
    url: str

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def memory_mib(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    async def metric(self, name: str) -> float:
        async with httpx.AsyncClient() as http:
            text = (await http.get(f"{self.url}/metrics")).text
        return sum(
            float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name)
        )


@asynccontextmanager
async def child(api: Emulator, folder: Path) -> AsyncIterator[Child]:
    folder.mkdir()
    config = folder / "kubeconfig"
    config.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [{"name": "x", "cluster": {"server": str(api.url).rstrip("/")}}],
                "users": [{"name": "x", "user": {"token": "t"}}],
            }
        )
    )
    process = await asyncio.create_subprocess_exec(
        *CARAWAY,
        "operator",
        "--listen=127.0.0.1:0",
        "--log-format=json",
        env={**os.environ, "KUBECONFIG": str(config)},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    reading: asyncio.Task[bytes] | None = None
    try:
        async with asyncio.timeout(60):
            # It says so in its first line, or ends.
            started = json.loads(await process.stderr.readline())
        reading = asyncio.create_task(process.stderr.read())
        yield Child(process, f"http://{started['listen']}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if reading is not None:
            # For whoever reads why a test failed.
            print(f"exit code {process.returncode}", (await reading).decode()[-4000:], sep="\n")


def managed(api: Emulator) -> Controllers:
    """Have Kubernetes' controllers act soon after every change."""
    controllers, is_due = Controllers(api), False

    def act() -> None:
        nonlocal is_due
        controllers.settle()
        is_due = False

    def changed() -> None:
        nonlocal is_due
        if not is_due:
            is_due = True
            asyncio.get_running_loop().call_later(0.3, act)

    api.changed = changed
    return controllers


def create(api: Emulator, name: str) -> None:
    api.put(
        {
            "apiVersion": CLUSTER.api_version,
            "kind": CLUSTER.name,
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"manifest": MANIFEST},
        }
    )


async def until_ready(api: Emulator, names: list[str], seconds: float) -> None:
    async def look() -> bool:
        found = [(api.get(CLUSTER.name, name).get("status") or {}).get("phase") for name in names]
        return set(found) == {"Ready"}

    await eventually(look, f"{len(names)} clusters are ready", seconds)


async def test_a_process_leads_works_says_how_it_is_and_hands_over(tmp_path: Path) -> None:
    async with emulated() as api:
        managed(api)
        create(api, "shop")
        async with child(api, tmp_path / "one") as one, child(api, tmp_path / "other") as other:
            await until_ready(api, ["shop"], 30)
            lead, wait = one, other
            if not await one.metric("caraway_operator_leader"):
                lead, wait = other, one
            assert await wait.metric("caraway_operator_leader") == 0
            assert await lead.metric('caraway_operator_clusters{phase="Ready"}') == 1

            lead.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(lead.process.wait(), 10) == 0

            async def leads() -> bool:
                return bool(await wait.metric("caraway_operator_leader"))

            await eventually(leads, "the other one leads", 15)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_hundred_clusters_cost_little_while_nothing_happens(tmp_path: Path) -> None:
    # A run of its own: that of other tests is bounded to a minute.
    asyncio.run(hundred(tmp_path / "operator"))


async def passed(seconds: float) -> None:
    began = time.monotonic()

    async def look() -> bool:
        return time.monotonic() - began >= seconds

    await eventually(look, f"{seconds} s have passed", seconds + 5)


async def hundred(folder: Path) -> None:
    """300 MB and a tenth of a core are what one operator may cost."""
    async with emulated() as api:
        managed(api)
        names = [f"shop-{number}" for number in range(100)]
        for name in names:
            create(api, name)
        async with child(api, folder) as operator:
            await until_ready(api, names, 300)
            await passed(20)
            began, cpu_s = time.monotonic(), operator.cpu_s
            writes = await operator.metric("caraway_operator_kubernetes_writes_total")
            await passed(60)
            share = (operator.cpu_s - cpu_s) / (time.monotonic() - began)
            lease_writes = 60 / 4 + 5
            written = await operator.metric("caraway_operator_kubernetes_writes_total") - writes
            print(f"{operator.memory_mib:.0f} MiB, {share:.1%} of a core, {written:.0f} writes")
            assert written <= lease_writes
            assert operator.memory_mib < 300
            assert share < 0.1
