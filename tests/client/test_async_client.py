"""The client for asyncio: its arguments, its end, and calls that do not wait for each other."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pyarrow as pa
import pytest

from caraway.async_client import AsyncClient
from caraway.errors import ApiError
from caraway_core.errors import CarawayError
from tests.client.flight_server import flight_running, numbers
from tests.client.runtime import Answer, FakeRuntime, arrow_body

ROWS = arrow_body([{"id": 1}, {"id": 2}])
WAIT_S = 30.0


async def test_statements_return_tables_and_batches(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=ROWS))
    async with AsyncClient("secret", http_url=runtime.endpoint, user_agent="mine") as client:
        assert (await client.sql("SELECT :n", {"n": 1})).to_pylist() == [{"id": 1}, {"id": 2}]
        seen: list[int] = []
        await client.sql("SELECT 1", on_data=lambda batch: seen.append(batch.num_rows))
        assert sum(seen) == 2
        async with await client.reader("SELECT 1") as rows:
            assert rows.schema.names == ["id"]
            assert [batch.num_rows async for batch in rows] == [2]
    first = runtime.asked[0]
    assert json.loads(first.body) == {"sql": "SELECT :n", "parameters": {"n": 1}}
    assert first.headers["x-api-key"] == "secret" and "mine" in first.headers["user-agent"]


async def test_statements_go_over_flight_if_it_has_an_address() -> None:
    with flight_running() as server:
        async with AsyncClient(flight_url=server.url) as client:
            assert (await client.sql("SELECT n")).to_pylist() == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert [what for what, _ in server.asked][:1] == ["info"]


async def test_errors_of_the_server_are_raised(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(400, b"no column 'x'"))
    async with AsyncClient(http_url=runtime.endpoint) as client:
        with pytest.raises(ApiError, match="no column 'x'"):
            await client.sql("SELECT x")


async def test_a_busy_server_is_asked_again_as_often_as_set(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(429, b"queue is full", {"retry-after": "0"}))
    async with AsyncClient(http_url=runtime.endpoint, max_retries=1) as client:
        with pytest.raises(ApiError, match="queue is full"):
            await client.sql("SELECT 1")
        assert len(runtime.asked) == 2
        client.set_max_retries(0)
        with pytest.raises(ApiError):
            await client.sql("SELECT 1")
        assert len(runtime.asked) == 3


async def test_calls_do_not_wait_for_each_other_nor_the_loop_for_them(
    runtime: FakeRuntime,
) -> None:
    both = threading.Barrier(2)

    def together(handler: BaseHTTPRequestHandler) -> None:
        both.wait(WAIT_S)
        body = b"[]"
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    runtime.answers("GET /v1/datasets", together)
    runtime.answers("GET /v1/catalogs", together)
    async with AsyncClient(http_url=runtime.endpoint) as client, asyncio.timeout(WAIT_S):
        assert [*await asyncio.gather(client.datasets(), client.catalogs())] == [[], []]


async def test_queries_are_submitted_and_opened_again_by_their_id(runtime: FakeRuntime) -> None:
    submitted = {"query_id": "q1", "status": "QUEUED"}
    runtime.answers("POST /v1/queries", Answer(202, json.dumps(submitted).encode()))
    done = {"query_id": "q1", "status": "SUCCEEDED"}
    runtime.answers("GET /v1/queries/q1/status", Answer(body=json.dumps(done).encode()))
    async with AsyncClient(http_url=runtime.endpoint) as client:
        assert (await client.query("SELECT 1", maximum_size=5)).id == "q1"
        assert json.loads(runtime.asked[0].body)["sql"] == "SELECT 1"
        count = len(runtime.asked)
        handle = client.open_query("q1")
        assert len(runtime.asked) == count, "the server is not asked yet"
        assert (await handle.wait(WAIT_S)).has_succeeded


async def test_a_closed_client_says_so(runtime: FakeRuntime) -> None:
    client = AsyncClient(http_url=runtime.endpoint)
    await client.close()
    await client.close()
    with pytest.raises(CarawayError, match="the client is closed"):
        await client.datasets()
    assert runtime.asked == []


async def test_an_error_in_the_block_closes_the_client(runtime: FakeRuntime) -> None:
    with pytest.raises(ZeroDivisionError):
        async with AsyncClient(http_url=runtime.endpoint) as client:
            raise ZeroDivisionError
    with pytest.raises(CarawayError, match="the client is closed"):
        await client.datasets()


async def test_a_reader_that_is_left_cancels_its_statement() -> None:
    gate = threading.Event()

    def endless() -> Iterator[pa.RecordBatch]:
        number = 0
        while not gate.is_set():
            yield numbers(number, 1)
            number += 1

    with flight_running() as server:
        server.scripts = [endless]
        try:
            async with AsyncClient(flight_url=server.url) as client:
                async with await client.reader("SELECT n") as rows:
                    assert await rows.read_next_batch() is not None
            assert await asyncio.to_thread(server.cancelled.wait, WAIT_S)
        finally:
            gate.set()
