"""Runs `caraway operator` as a process of its own against the emulated API."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from caraway_kube.api.kinds import CLUSTER
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator
from tests.kit.kube_controllers import Controllers
from tests.operator.harness import MANIFEST

CARAWAY = [sys.executable, "-c", "from caraway.cli import main; main()"]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class OperatorProcess:
    """A running operator."""

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
async def operator_process(
    api: Emulator, folder: Path, *program: str | Path
) -> AsyncIterator[OperatorProcess]:
    """Run an operator until the end of the body."""
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
        *(program or CARAWAY),
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
            # The first line contains the address.
            started = json.loads(await process.stderr.readline())
        reading = asyncio.create_task(process.stderr.read())
        yield OperatorProcess(process, f"http://{started['listen']}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if reading is not None:
            # Shown if a test fails.
            print(f"exit code {process.returncode}", (await reading).decode()[-4000:], sep="\n")


def run_controllers(api: Emulator, delay_s: float = 0.3) -> Controllers:
    """Let the controllers of Kubernetes act soon after every change."""
    controllers, is_due = Controllers(api), False

    def act() -> None:
        nonlocal is_due
        controllers.settle()
        is_due = False

    def changed() -> None:
        nonlocal is_due
        if not is_due:
            is_due = True
            asyncio.get_running_loop().call_later(delay_s, act)

    api.changed = changed
    return controllers


def create_cluster(api: Emulator, name: str) -> None:
    """Create a CarawayCluster."""
    api.put(
        {
            "apiVersion": CLUSTER.api_version,
            "kind": CLUSTER.name,
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"manifest": MANIFEST},
        }
    )


async def until_ready(api: Emulator, names: list[str], seconds: float) -> None:
    """Wait until the clusters are ready."""

    async def are_ready() -> bool:
        found = [(api.get(CLUSTER.name, name).get("status") or {}).get("phase") for name in names]
        return set(found) == {"Ready"}

    await eventually(are_ready, f"{len(names)} clusters are ready", seconds)
