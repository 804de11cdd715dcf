import asyncio
import os
import signal
from pathlib import Path

import httpx
import pytest

from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.deadlines import until
from tests.kit.ray_cluster import RayCluster, marked

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


def probe(cluster: RayCluster, path: str) -> httpx.Response:
    return httpx.get(f"http://{cluster.executors['e2'].facts['metrics']}{path}", timeout=60)


def test_executor_answers_probes_and_counts(cluster: RayCluster) -> None:
    assert probe(cluster, "/health").text == "ok"
    until(lambda: probe(cluster, "/v1/ready").status_code == 200, "the executor is ready", 60)
    assert "executor_tasks_active 0.0" in probe(cluster, "/metrics").text
    assert probe(cluster, "/else").status_code == 404


def test_logs_hold_nothing_of_ray(cluster: RayCluster) -> None:
    lines = cluster.executors["e1"].log.read_text().splitlines()
    assert [line.split(maxsplit=2)[2].split("  ")[0][:11] for line in lines[:2]] == [
        "executor jo", "executor is",
    ]  # fmt: skip


async def test_refusal_is_logged_and_makes_it_unready(cluster: RayCluster) -> None:
    fleet = RayFleet(cluster.token.read_text().strip())
    async with asyncio.timeout(60):
        while ExecutorId("e2") not in [each.executor_id for each in await fleet.describe()]:
            pass
    reason = "it speaks version 1 of the protocol, this scheduler 2; update the executor"
    await fleet.refuse(ExecutorId("e2"), reason)
    until(lambda: probe(cluster, "/v1/ready").status_code == 503, "it is not ready")
    assert reason in probe(cluster, "/v1/ready").text
    assert reason in cluster.executors["e2"].log.read_text()
    await fleet.refuse(ExecutorId("e2"), "")
    until(lambda: probe(cluster, "/v1/ready").status_code == 200, "it is ready again")
    await fleet.aclose()


def test_killed_supervisor_leaves_nothing(cluster: RayCluster) -> None:
    process = cluster.begin("e4").wait_up()
    actor = cluster.actor_pid("e4")
    session = Path((cluster.folder / "e4" / "ray" / "session-folder").read_text())
    process.kill()
    until(lambda: not Path(f"/proc/{actor}").exists(), "the actor is gone")
    until(lambda: not [t for t in marked(cluster.mark).values() if str(session) in t], "e4")


def test_stopped_twice_it_drains_no_longer(cluster: RayCluster) -> None:
    process = cluster.begin("e5").wait_up()
    os.kill(process.popen.pid, signal.SIGTERM)
    os.kill(process.popen.pid, signal.SIGTERM)
    assert process.popen.wait(60) == 0
    assert process.log.read_text().count("executor stopped") == 1
