import httpx
import pytest

from caraway_core.releases import protocol_versions as versions
from caraway_core.releases.protocol_versions import SPOKEN
from caraway_core.security import signatures
from caraway_operator.scheduler_client import (
    ExecutorView,
    HttpSchedulerClient,
    MemoryUsage,
    OperatorRefusedError,
    PartView,
    SchedulerClientError,
    SchedulerEndpoint,
    SchedulerLoad,
)

TARGET = SchedulerEndpoint("http://shop.web.svc:9090", "secret")


def schedulers(
    status: int, answer: object, seen: list[httpx.Request] | None = None
) -> HttpSchedulerClient:
    def respond(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return httpx.Response(status, json=answer)

    return HttpSchedulerClient(httpx.AsyncClient(transport=httpx.MockTransport(respond)))


async def test_executors_are_parsed() -> None:
    told = [
        {"id": "e-0", "state": "ready", "ready": True, "draining": False, "drained": False,
         "running": 2, "holds": ["orders"], "incarnation": "x", "reason": None},
        {"id": "e-1", "state": "refused", "ready": False, "draining": False, "drained": False,
         "running": 0, "holds": [], "incarnation": "y", "reason": "version 3"},
    ]  # fmt: skip
    seen: list[httpx.Request] = []

    found = await schedulers(200, told, seen).executors(TARGET)

    assert found == [
        ExecutorView("e-0", is_ready=True, running=2, holds=("orders",)),
        ExecutorView("e-1", is_ready=False, is_refused=True),
    ]
    shown = seen[0].headers["Authorization"]
    assert "secret" not in shown
    assert signatures.SignatureGate("secret").check(shown, "GET", "/internal/executors") is None


async def test_load_counts_statements_and_jobs() -> None:
    told = {
        "queued": 1, "running": 2, "max_concurrent": 8, "jobs_queued": 3, "jobs_running": 4,
        "schedulers": 1, "executors": [{"id": "e-0", "memory_used": 5, "memory_limit": 10}],
    }  # fmt: skip

    assert await schedulers(200, told).load(TARGET) == SchedulerLoad(4, 6, (MemoryUsage(5, 10),))


async def test_drains_are_started_and_cancelled() -> None:
    seen: list[httpx.Request] = []
    asked = schedulers(202, {}, seen)

    await asked.drain(TARGET, "e-0")
    await asked.undrain(TARGET, "e-0")

    assert [(each.method, each.url.path) for each in seen] == [
        ("POST", "/internal/executors/e-0/drain"),
        ("DELETE", "/internal/executors/e-0/drain"),
    ]


async def test_an_executor_that_is_gone_needs_no_drain() -> None:
    await schedulers(404, {}).drain(TARGET, "e-0")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"detail": "it needs a signature: the token is wrong"}, "it needs a signature: the token"),
        ({"error": "Unauthorized"}, "Unauthorized"),
        (["Unauthorized"], "Unauthorized"),
        ("", "it gives no reason"),
    ],
)
async def test_a_401_has_the_reason_of_the_scheduler(answer: object, reason: str) -> None:
    client = schedulers(401, answer)

    for asking in (client.executors(TARGET), client.drain(TARGET, "e-0"), client.load(TARGET)):
        with pytest.raises(OperatorRefusedError, match=reason):
            await asking


@pytest.mark.parametrize(
    ("spoken", "is_accepted"),
    [(None, SPOKEN.oldest <= 16), (SPOKEN.header, True), ("14-15", False), ("98-99", False)],
)
async def test_schedulers_without_a_common_version_are_named(
    spoken: str | None, is_accepted: bool
) -> None:
    headers = {versions.HEADER: spoken} if spoken else {}
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=[], headers=headers)

    client = HttpSchedulerClient(httpx.AsyncClient(transport=httpx.MockTransport(respond)))

    if is_accepted:
        assert await client.executors(TARGET) == []
    else:
        with pytest.raises(OperatorRefusedError, match=f"this operator {SPOKEN}; upgrade and"):
            await client.executors(TARGET)
    assert seen[0].headers[versions.HEADER] == SPOKEN.header


async def test_a_long_reason_is_cut() -> None:
    with pytest.raises(OperatorRefusedError) as raised:
        await schedulers(401, {"detail": "no " * 10_000}).executors(TARGET)

    assert len(raised.value.message) < 400


async def test_readiness_is_the_status_of_the_answer() -> None:
    seen: list[httpx.Request] = []

    assert await schedulers(200, "ready", seen).is_ready(TARGET, 2)
    assert not await schedulers(503, "not ready").is_ready(TARGET, 2)
    assert str(seen[0].url) == "http://shop.web.svc:9090/v1/ready?probe=pod&min_ready_executors=2"


@pytest.mark.parametrize(("status", "answer"), [(401, {}), (503, {}), (200, {"no": "list"})])
async def test_a_malformed_answer_is_an_error(status: int, answer: object) -> None:
    with pytest.raises(SchedulerClientError) as caught:
        await schedulers(status, answer).executors(TARGET)
    assert "secret" not in str(caught.value) + repr(TARGET)


async def test_unready_parts_are_parsed() -> None:
    told = [
        {"kind": "dataset", "name": "orders", "status": "error", "reason": "no such file",
         "is_settled": True},
        {"kind": "view", "name": "v", "status": "initializing", "reason": "", "is_settled": False},
    ]  # fmt: skip

    assert await schedulers(200, told).unready_parts(TARGET) == [
        PartView("dataset orders (error)", "no such file"),
        PartView("view v (initializing)", is_loading=True),
    ]
    with pytest.raises(SchedulerClientError, match="404"):
        await schedulers(404, {}).unready_parts(TARGET)
