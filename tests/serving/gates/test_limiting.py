"""Limits on the rate and the duration of requests."""

import asyncio
from pathlib import Path

import httpx
import pytest

from caraway_serving.failures import ErrorShapes
from caraway_serving.gates.limiting import LimitGate
from caraway_serving.limits import TokenBucket
from tests.kit.clocks import Clock
from tests.kit.runtime import Running, running

ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"
KEYS = "runtime: {auth: {api-key: {keys: ['k:rw']}}}\n"


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
