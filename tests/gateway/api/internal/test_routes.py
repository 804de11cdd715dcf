"""The internal routes, over a fleet that the test controls."""

import asyncio
from pathlib import Path

import pytest

from caraway_core.releases import protocol_versions as versions
from caraway_core.releases.protocol_versions import SPOKEN
from caraway_core.settings import Address
from caraway_gateway.composition import app
from caraway_operator import scheduler_client
from caraway_operator.scheduler_client import SchedulerEndpoint
from caraway_scheduler.membership.drains import SETTLED_AFTER_S
from caraway_serving import listeners
from tests.gateway.api.internal.operator_requests import SIGNED, TOKEN, operated
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.fleets import FakeFleet
from tests.kit.runtime import running
from tests.kit.wires import recorded

ROUTES = [
    ("GET", "/internal/executors"),
    ("GET", "/internal/load"),
    ("GET", "/internal/parts"),
    ("POST", "/internal/executors/a/drain"),
    ("DELETE", "/internal/executors/a/drain"),
]


async def test_executor_drains_and_is_wanted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fleet = Clock(), FakeFleet("a", "b")
    async with operated(tmp_path, monkeypatch, fleet, clock) as (runtime, _, operator):
        asked = await operator.post("/internal/executors/a/drain")
        assert asked.status_code == 202
        assert asked.json() == {
            "id": "a", "state": "draining", "ready": False, "draining": True, "drained": False,
            "running": 0, "holds": [], "incarnation": "first",
            "reason": "it was asked to drain and takes no new work",
        }  # fmt: skip
        found = (await operator.get("/internal/executors")).json()
        assert [(each["id"], each["ready"], each["draining"]) for each in found] == [
            ("a", False, True), ("b", True, False),
        ]  # fmt: skip
        clock.now += SETTLED_AFTER_S

        async def has_drained() -> bool:
            found = (await operator.get("/internal/executors")).json()
            return bool(found[0]["drained"])

        assert await eventually(has_drained, "a has drained")
        gate = await runtime.api.get("/v1/ready?min_ready_executors=2")
        assert gate.status_code == 503, "it does not count as ready"
        listed = (await runtime.api.get("/v1/cluster/executors")).json()
        assert [each["state"] for each in listed] == ["draining", "ready"]
        undone = await operator.delete("/internal/executors/a/drain")
        assert (undone.status_code, undone.json()["ready"]) == (200, True)
        assert (await runtime.api.get("/v1/ready?min_ready_executors=2")).status_code == 200


async def test_load_reports_waiting_work_and_executor_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = FakeFleet("a")
    fleet["a"].change(memory_used_bytes=7, active_tasks=3)
    async with operated(tmp_path, monkeypatch, fleet, Clock()) as (runtime, _, operator):
        runtime.services.queries.admission.running = 0
        load = (await operator.get("/internal/load")).json()
        assert load == {
            "queued": 0,
            "running": 0,
            "max_concurrent": runtime.services.queries.admission.max_running,
            "jobs_queued": 0,
            "jobs_running": 0,
            "schedulers": 1,
            "executors": [
                {"id": "a", "ready": True, "memory_used": 7, "memory_limit": 2**30, "running": 3}
            ],
        }


async def test_the_token_of_an_operator_is_never_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (runtime, members, _):
        with listeners.bind(Address("127.0.0.1", 0), "--metrics") as listener:
            server = listeners.HttpServer(app.build_metrics(runtime.services))
            serving = asyncio.create_task(server.serve([listener]))
            await server.is_up.wait()
            async with (
                recorded(str(listeners.bound_address(listener))) as wire,
                scheduler_client.open_client() as link,
            ):
                target = SchedulerEndpoint(f"http://{wire.address}", TOKEN)
                await link.drain(target, "a")
                assert [each.is_draining for each in await link.executors(target)] == [True]
                await link.undrain(target, "a")
                assert (await link.load(target)).queued == 0
                with pytest.raises(
                    scheduler_client.OperatorRefusedError, match="does not match the token"
                ):
                    await link.load(SchedulerEndpoint(target.url, "wrong"))
            server.stop()
            await serving
        assert [each.state for each in members.executors()] == ["ready"]

    assert b"Authorization: Caraway " in wire.sent
    assert TOKEN.encode() not in wire.sent


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer é"},
     {"Authorization": f"Basic {TOKEN}"}, {"X-API-Key": TOKEN}, {"Authorization": "Bearer "}],
)  # fmt: skip
async def test_requests_without_the_token_are_rejected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
) -> None:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (_, members, operator):
        operator.headers.pop("authorization")
        for method, path in ROUTES:
            refused = await operator.request(method, path, headers=raw)
            assert refused.status_code == 401, path
            assert "cluster's token" in refused.json()["error"]
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.headers[versions.HEADER] == SPOKEN.header
        assert [each.state for each in members.executors()] == ["ready"]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_unknown_executor_is_404(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (_, _, operator):
        found = await operator.request(method, "/internal/executors/zz/drain")
        assert (found.status_code, found.json()) == (
            404,
            {"error": "executor 'zz' is not in the cluster"},
        )


async def test_without_a_cluster_there_are_no_such_routes(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        for method, path in ROUTES:
            for client in (runtime.metrics, runtime.api):
                answer = await client.request(method, path, headers=SIGNED)
                assert answer.status_code == 404, path


async def test_users_port_has_no_such_routes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (runtime, _, _):
        assert (await runtime.api.get("/internal/load", headers=SIGNED)).status_code == 404
