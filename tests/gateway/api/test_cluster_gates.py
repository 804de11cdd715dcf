"""Executor gates of `/v1/ready`, listing and metrics, over a fleet that the test controls."""

import asyncio
from pathlib import Path

import pytest

from caraway_core.ids import CatalogVersion, ExecutorId
from caraway_core.protocols.fleet import TableCatalog
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_scheduler.membership import state
from tests.gateway.api.gate_clusters import WAIT_S, cluster, settled
from tests.kit.clocks import Clock
from tests.kit.fleets import FakeExecutor, FakeFleet
from tests.kit.runtime import Running
from tests.kit.turns import turn


async def gate(runtime: Running, query: str) -> tuple[int, str]:
    response = await runtime.api.get(f"/v1/ready?{query}")
    return response.status_code, response.text


async def test_gates_count_the_ready_among_the_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, clock = FakeFleet("a", "b", "c"), Clock()
    async with cluster(tmp_path, monkeypatch, fleet, clock) as (runtime, membership):
        fleet["c"].hang()
        await membership.install(TableCatalog(CatalogVersion(1), "here", {}))
        await settled(membership, a="ready", b="ready", c="registered")
        for query, expected in {
            "min_ready_executors=2": 200,
            "min_ready_executors=3": 503,
            "min_ready_executors_percent=66": 200,
            "min_ready_executors_percent=67": 503,
            "min_ready_executors=2&min_ready_executors_percent=67": 503,
            "min_ready_executors=3&min_ready_executors_percent=66": 503,
            "min_ready_executors=2&min_ready_executors_percent=66": 200,
            "min_ready_executors=0&min_ready_executors_percent=0": 200,
        }.items():
            text = "ready" if expected == 200 else "not ready"
            assert await gate(runtime, query) == (expected, text), query
        query = "min_ready_executors=3&min_ready_executors_percent=50&verbose=true"
        status, text = await gate(runtime, query)
        assert (status, text.splitlines()) == (
            503,
            [
                "[+] components ok",
                "[-] executors: 2/3 ready (66%, registered=3, min=3)",
                "[+] executors percent: 2/3 ready (66%, registered=3, min=50%)",
                "not ready",
            ],
        )
        # The port for probes gives the same answer without a key.
        probed = await runtime.metrics.get("/v1/ready?min_ready_executors=3")
        assert probed.status_code == 503


async def test_lost_and_refused_executors_are_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, clock = FakeFleet("a", "b", "c"), Clock()
    fleet.add(FakeExecutor("old", PROTOCOL_VERSION - 2))
    async with cluster(tmp_path, monkeypatch, fleet, clock) as (runtime, membership):
        await membership.install(TableCatalog(CatalogVersion(1), "here", {}))
        await settled(membership, a="ready", b="ready", c="ready", old="refused")
        assert (await gate(runtime, "min_ready_executors_percent=100"))[0] == 200
        fleet["a"].is_silent = True
        membership.lost(ExecutorId("a"), "the actor died")
        status, text = await gate(runtime, "min_ready_executors_percent=100&verbose=true")
        assert status == 200 and "2/2 ready (100%, registered=2, min=100%)" in text
        assert (await gate(runtime, "min_ready_executors=3"))[0] == 503
        fleet["b"].change(is_draining=True)
        await settled(membership, a="lost", b="draining", c="ready", old="refused")
        status, text = await gate(runtime, "min_ready_executors_percent=51&verbose=true")
        assert status == 503 and "1/2 ready (50%, registered=2, min=51%)" in text


async def test_percent_gate_fails_without_registered_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, monkeypatch, FakeFleet(), Clock()) as (runtime, _):
        assert await gate(runtime, "") == (200, "ready")
        status, text = await gate(runtime, "min_ready_executors_percent=1&verbose=true")
        assert status == 503
        assert "[-] executors percent: 0/0 ready (0%, registered=0, min=1%)" in text
        assert (await gate(runtime, "min_ready_executors_percent=101"))[0] == 400
        assert (await gate(runtime, "min_ready_executors=-1"))[0] == 400


async def test_renewal_of_the_catalog_does_not_close_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, clock = FakeFleet("a", "b"), Clock()
    async with cluster(tmp_path, monkeypatch, fleet, clock) as (runtime, membership):
        await membership.install(TableCatalog(CatalogVersion(1), "here", {}))
        await settled(membership, a="ready", b="ready")
        fleet["a"].hang()
        renewing = asyncio.create_task(
            membership.install(TableCatalog(CatalogVersion(2), "here", {}))
        )
        await turn()
        assert (await gate(runtime, "min_ready_executors=2"))[0] == 200
        fleet["a"].hangs.set()
        assert await renewing == {}
        assert (await gate(runtime, "min_ready_executors=2"))[0] == 200


async def test_listing_and_metrics_have_states_and_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, clock = FakeFleet("a", "b"), Clock()
    fleet["a"].change(active_tasks=3, finished_tasks=5, failed_tasks=1)
    async with cluster(tmp_path, monkeypatch, fleet, clock) as (runtime, membership):
        await membership.install(TableCatalog(CatalogVersion(7), "here", {}))
        await settled(membership, a="ready", b="ready")
        fleet["b"].is_silent = True
        async with asyncio.timeout(WAIT_S):
            until = fleet.rounds + 2
            while fleet.rounds < until:
                await turn()
        clock.now += state.LOST_AFTER_S
        await settled(membership, a="ready", b="lost")
        first, second = (await runtime.api.get("/v1/cluster/executors")).json()
        assert (first["executor_id"], first["state"], first["reason"]) == ("a", "ready", None)
        assert (first["active_tasks"], first["catalog_version"]) == (3, 7)
        assert (second["state"], second["reason"]) == ("lost", "it did not respond for 5 s")
        assert second["heartbeat_age_ms"] >= 5000
        rows = (await runtime.sql("SELECT executor_id, state FROM runtime.executors")).json()
        assert [row["state"] for row in rows] == ["ready", "lost"]
        page = (await runtime.metrics.get("/metrics")).text.splitlines()
        for line in (
            "scheduler_active_executors_count 1.0",
            "scheduler_count 1.0",
            'node_status{executor="a"} 1.0',
            'node_status{executor="b"} 3.0',
            'node_tasks_total{executor="a",outcome="finished"} 5.0',
            'node_tasks_total{executor="a",outcome="failed"} 1.0',
        ):
            assert line in page, line
