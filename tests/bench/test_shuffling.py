import pytest

from bench.shuffling import reach, shuffle
from caraway_core import ray_nodes
from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.ray_cluster import RayCluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


async def test_each_executor_sends_half_of_its_rows_to_the_other(cluster: RayCluster) -> None:
    ips = {ExecutorId(name): cluster.node_ip(name) for name in ("e1", "e2")}
    fleet = RayFleet(ray_nodes.read_token(cluster.token))
    try:
        await reach(fleet, set(ips))
        best = await shuffle(fleet, ips, size_mb=4, rounds=1)
    finally:
        await fleet.aclose()
    assert best.size_bytes > 3_500_000
    assert 0.4 < best.moved_bytes / best.size_bytes < 0.6
    assert 0 < best.parting_seconds < best.seconds
    assert best.ray_seconds > 0
