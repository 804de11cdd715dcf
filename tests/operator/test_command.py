"""`caraway operator` as a process of its own, against the emulated API."""

import asyncio
import signal
from pathlib import Path

from tests.kit.deadlines import eventually
from tests.kit.kube import emulated
from tests.operator.processes import (
    create_cluster,
    operator_process,
    run_controllers,
    until_ready,
)


async def test_a_process_reconciles_reports_metrics_and_releases_the_lease(tmp_path: Path) -> None:
    async with emulated() as api:
        run_controllers(api)
        create_cluster(api, "shop")
        async with (
            operator_process(api, tmp_path / "one") as one,
            operator_process(api, tmp_path / "other") as other,
        ):
            await until_ready(api, ["shop"], 30)
            leader, standby = one, other
            if not await one.metric("caraway_operator_leader"):
                leader, standby = other, one
            assert await standby.metric("caraway_operator_leader") == 0
            assert await leader.metric('caraway_operator_clusters{phase="Ready"}') == 1

            leader.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(leader.process.wait(), 10) == 0

            async def leads() -> bool:
                return bool(await standby.metric("caraway_operator_leader"))

            await eventually(leads, "the standby becomes the leader", 60)
