"""Limits on the rate and the duration of requests."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.types import Scope

from caraway_serving.failures import ErrorShapes
from caraway_serving.gates.limiting import BodyGate, LimitGate, StopGate
from caraway_serving.limits import TokenBucket
from caraway_serving.room import FREE_BYTES, BodyMemory
from caraway_serving.scopes import LEASE
from tests.kit.clocks import Clock
from tests.kit.runtime import Running, running
from tests.serving.gates.asking import Route, ask, scope

ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"
KEYS = "runtime: {auth: {api-key: {keys: ['k:rw']}}}\n"
LIMIT = 1_000_000
SHAPES = ErrorShapes(as_error=("/v1/queries",))


def limit(runtime: Running, rate: float, clock: Clock | None = None) -> Clock:
    clock = clock or Clock()
    bucket = runtime.services.limits.bucket = TokenBucket(clock)
    bucket.refill_at(rate)
    return clock


async def test_requests_above_the_limit_get_retry_after(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        clock = limit(runtime, 2)
        statuses = [(await runtime.sql("SELECT 1")).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        refused = await runtime.sql("SELECT 1")
        assert refused.headers["retry-after"] == "1"
        assert refused.text == "more than 2 requests a second; the limit api_rps allows no more"
        assert refused.headers["x-trace-id"]
        clock.now += 0.5
        assert (await runtime.sql("SELECT 1")).status_code == 200
        page = (await runtime.metrics.get("/metrics")).text
        assert 'http_requests_limited_total{limit="api_rps"} 2.0' in page


async def test_refusals_have_the_shape_of_the_route(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        limit(runtime, 0.1)
        await runtime.sql("SELECT 1")
        refused = await runtime.api.get("/v1/queries")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        assert "api_rps" in refused.json()["error"]


async def test_probes_and_metrics_are_never_limited(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        limit(runtime, 0.1)
        await runtime.sql("SELECT 1")
        runtime.services.limits.request_timeout_s = 1e-9
        for _ in range(3):
            assert (await runtime.api.get("/health")).status_code == 200
            assert (await runtime.api.get("/v1/ready")).status_code == 200
            for path in ("/health", "/v1/ready", "/metrics"):
                assert (await runtime.metrics.get(path)).status_code == 200


async def test_callers_without_a_key_use_up_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, KEYS) as runtime:
        limit(runtime, 1)
        for _ in range(5):
            assert (await runtime.sql("SELECT 1")).status_code == 401
        key = {"x-api-key": "k"}
        assert (await runtime.sql("SELECT 1", **key)).status_code == 200
        assert (await runtime.sql("SELECT 1", **key)).status_code == 429


async def test_request_that_takes_too_long_ends_and_with_it_its_statement(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        runtime.services.limits.request_timeout_s = 0.05
        late = await runtime.sql(ENDLESS)
        assert late.status_code == 504 and "request_timeout_secs" in late.text
        runtime.services.limits.request_timeout_s = None
        async with asyncio.timeout(60):
            await runtime.services.queries.active.wait_idle()
        assert runtime.services.tallies.limited_requests == {("request_timeout_secs",): 1}


async def test_long_poll_ends_in_the_shape_of_its_route(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        job = (await runtime.api.post("/v1/queries", json={"sql": ENDLESS})).json()
        runtime.services.limits.request_timeout_s = 0.05
        late = await runtime.api.get(f"{job['status_url']}?wait=10")
        assert late.status_code == 504 and "request_timeout_secs" in late.json()["error"]
        runtime.services.limits.request_timeout_s = None
        await runtime.api.post(f"/v1/queries/{job['query_id']}/cancel")


async def test_answer_that_has_started_is_aborted(tmp_path: Path) -> None:

    async with running(tmp_path, "") as runtime:
        ended = asyncio.Event()

        async def streams(scope: object, receive: object, send: object) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        runtime.services.limits.request_timeout_s = 0.01
        gate = LimitGate(streams, runtime.services.limits, runtime.services.tallies, ErrorShapes())
        sent: list[str] = []

        async def send(message: object) -> None:
            sent.append(message["type"])  # type: ignore[index]

        async def receive() -> dict[str, str]:
            return {"type": "http.request"}

        await gate({"type": "http", "path": "/v1/sql"}, receive, send)
        assert sent == ["http.response.start"] and ended.is_set()


async def test_timeout_of_the_route_itself_passes(tmp_path: Path) -> None:

    async with running(tmp_path, "") as runtime:

        async def fails(scope: object, receive: object, send: object) -> None:
            raise TimeoutError("its own")

        runtime.services.limits.request_timeout_s = 10
        gate = LimitGate(fails, runtime.services.limits, runtime.services.tallies, ErrorShapes())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(gate)) as client:
            with pytest.raises(TimeoutError, match="its own"):
                await client.get("http://test/v1/sql")


async def test_sql_timeout_of_the_limits_names_its_setting(tmp_path: Path) -> None:
    manifest = "runtime: {query: {timeout: 300s}}\n"
    async with running(tmp_path, manifest) as runtime:
        runtime.services.queries.bound(1, None)
        runtime.services.queries._timeouts.bound_s = 0.05
        late = await runtime.sql(ENDLESS)
        assert late.status_code == 504
        assert "have the limit sql_query_timeout_secs raised" in late.text


def gate(route: Route, room: BodyMemory | None = None) -> BodyGate:
    return BodyGate(route, LIMIT, room or BodyMemory(LIMIT), SHAPES)


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/v1/sql", "0", 200),
        ("/v1/sql", str(LIMIT), 200),
        ("/v1/sql", str(LIMIT + 1), 413),
        ("/v1/sql", "9" * 40, 413),
        ("/v1/sql", "9" * 5_000, 413),
        ("/v1/sql", "0" * 5_000 + "1", 413),
        ("/v1/sql", "", 200),
        ("/v1/sql", "-1", 200),
        ("/v1/sql", "many", 200),
        ("/v1/sql", "\xb2", 200),
        ("/health", str(128 * 1024), 200),
        ("/health", str(128 * 1024 + 1), 413),
        ("/v1/ready", str(128 * 1024 + 1), 413),
        ("/v1/ready/", str(128 * 1024 + 1), 200),
    ],
)
async def test_declared_length_decides_before_the_body_is_read(
    path: str, length: str, status: int
) -> None:
    route = Route()
    answer = await ask(gate(route), scope(path, content_length=length))
    assert answer.status == status
    assert len(route.seen) == (status == 200)


async def test_refusal_names_the_limit_in_the_shape_of_the_route() -> None:
    answer = await ask(gate(Route()), scope("/v1/queries", content_length=str(LIMIT + 1)))
    assert answer.body.startswith(b'{"error"') and str(LIMIT).encode() in answer.body


class Taking(Route):
    """A route that takes room for its body and then fails, waits or ends."""

    def __init__(self, room: BodyMemory, size: int) -> None:
        super().__init__()
        self.room, self.size = room, size
        self.took = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def __call__(self, asked: Scope, *rest: object) -> None:
        await asked[LEASE].grow(self.size)
        self.took.set()
        await self.goes_on.wait()
        await super().__call__(asked, *rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["end", "failure", "cancel"])
async def test_room_is_given_back_however_the_request_ends(ending: str) -> None:
    room = BodyMemory(LIMIT)
    route = Taking(room, 10 * FREE_BYTES)
    asking = asyncio.ensure_future(ask(gate(route, room), scope()))
    await route.took.wait()
    assert room.taken_bytes == 10 * FREE_BYTES
    route.raises = OSError("broken") if ending == "failure" else None
    if ending == "cancel":
        asking.cancel()
    route.goes_on.set()
    await asyncio.wait((asking,))
    assert room.taken_bytes == 0
    assert asking.cancelled() if ending == "cancel" else True


async def test_each_request_has_a_lease_of_its_own() -> None:
    route, room = Route(), BodyMemory(LIMIT)
    first = await ask(gate(route, room), scope())
    second = await ask(gate(route, room), scope())
    assert first.status == second.status == 200
    assert route.seen[0][LEASE] is not route.seen[1][LEASE]


async def test_what_is_not_http_has_no_lease() -> None:
    route = Route()
    await ask(gate(route), scope(kind="lifespan"))
    assert LEASE not in route.seen[0]


@dataclass
class Stopping:
    is_stopping: bool = True


STOP_SHAPES = ErrorShapes(as_error=("/v1/queries",), as_message=("/v1/datasets/",))


@pytest.mark.parametrize("path", ["/v1/sql", "/v1/ready", "/health/", "/healthy", "/", "/metrics"])
async def test_requests_are_told_to_go_elsewhere(path: str) -> None:
    route = Route()
    answer = await ask(StopGate(route, Stopping(), STOP_SHAPES), scope(path))
    assert (answer.status, route.seen) == (503, [])
    assert answer.headers["connection"] == "close"
    assert int(answer.headers["retry-after"]) > 0


async def test_health_is_answered_until_the_end() -> None:
    route = Route()
    assert (await ask(StopGate(route, Stopping(), STOP_SHAPES), scope("/health"))).status == 200


async def test_gate_closes_when_the_stop_begins_and_not_before() -> None:
    route, stopping = Route(), Stopping(is_stopping=False)
    gate = StopGate(route, stopping, STOP_SHAPES)
    assert (await ask(gate, scope())).status == 200
    stopping.is_stopping = True
    assert (await ask(gate, scope())).status == 503
    assert len(route.seen) == 1


@pytest.mark.parametrize(
    ("path", "begin"),
    [("/v1/queries", b'{"error":'), ("/v1/datasets/a", b'{"message":'), ("/v1/sql", b"Runtime")],
)
async def test_refusal_has_the_shape_of_the_route(path: str, begin: bytes) -> None:
    answer = await ask(StopGate(Route(), Stopping(), STOP_SHAPES), scope(path))
    assert answer.body.startswith(begin)


async def test_many_refusals_are_all_the_same() -> None:
    """One value serves all refusals; no answer may change it."""
    gate = StopGate(Route(), Stopping(), STOP_SHAPES)
    answers = [await ask(gate, scope(path)) for path in ("/v1/sql", "/v1/queries", "/v1/sql")]
    assert answers[0].messages == answers[2].messages


async def test_what_is_not_http_passes() -> None:
    route = Route()
    await ask(StopGate(route, Stopping(), STOP_SHAPES), scope(kind="lifespan"))
    assert len(route.seen) == 1
