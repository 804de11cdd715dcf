"""Hostile searches by every way that takes statements, on one node and on a cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pyarrow import flight

from caraway_gateway.flight import FlightEndpoint
from tests.gateway.flight.serving import ANY_PORT, Serving, query
from tests.kit import documents
from tests.kit.cluster_runtime import clustered
from tests.kit.documents import DOCS, found, searched, use
from tests.kit.runtime import Running
from tests.kit.word_embedder import WordEmbedder

_RERANK = "SELECT * FROM rerank(input => TABLE("
HOSTILE = (
    (f"SELECT 1 FROM {', '.join(['text_search(docs, $1)'] * 20)}", "more than 16 searches"),
    (f"{_RERANK * 6}SELECT body FROM docs{'))' * 6}", "nested more than 4 deep"),
    (f"SELECT 1 FROM text_search(docs, '{'a ' * 500_000}')", "more than 65536 bytes"),
    ("SELECT 1 FROM text_search(docs, 'a', limit => 0)", "from 1 to 1,000"),
    ("SELECT 1 FROM vector_search(docs, 'a', limit => 10000)", "from 1 to 1,000"),
    (f"{_RERANK}DROP TABLE docs), query => 'a')", "syntax error"),
    (f"{_RERANK}SELECT 1; DROP TABLE docs), query => 'a')", "one statement at a time"),
    (f"{_RERANK}SELECT a.body FROM docs a, docs b, docs c, docs d, docs e), query => 'a')",
     "more than 1,000 rows; add LIMIT"),
    ("SELECT 1 FROM text_search(caraway_source.docs, 'a')", "not found"),
    ("SELECT 1 FROM text_search(runtime.task_history, 'a')", "cannot be searched"),
    ("SELECT 1 FROM docs, LATERAL text_search(docs, docs.body)", "without LATERAL"),
    ("SELECT 1 FROM text_search(docs, 'a') WHERE " + " OR ".join(["id = 1"] * 502),
     "more than 500 ANDs and ORs"),
)  # fmt: skip


@asynccontextmanager
async def _served(folder: Path, executors: int) -> AsyncIterator[Running]:
    documents.write(folder)
    async with AsyncExitStack() as stack:
        if not executors:
            yield await stack.enter_async_context(searched(folder, DOCS))
            return
        started = clustered(folder, DOCS, executors=executors)
        runtime = (await stack.enter_async_context(started)).runtime
        use(runtime, WordEmbedder())
        yield runtime


async def _by_job(runtime: Running, sql: str) -> str:
    submitted = await runtime.api.post("/v1/queries", json={"sql": sql})
    if submitted.status_code == 400:
        return submitted.text
    assert submitted.status_code == 202, submitted.text
    path = f"/v1/queries/{submitted.json()['query_id']}/status?wait=60"
    while (state := (await runtime.api.get(path)).json())["status"] in ("PENDING", "RUNNING"):
        pass
    assert state["status"] == "FAILED", state
    return str(state["error"]["message"])


async def _by_flight(server: Serving, sql: str) -> str:
    with pytest.raises((flight.FlightError, OSError, ValueError)) as refused:
        await server.ask(query(sql))
    return str(refused.value)


@pytest.mark.parametrize("executors", [0, 2])
async def test_hostile_searches_are_refused(tmp_path: Path, executors: int) -> None:
    async with _served(tmp_path, executors) as runtime:
        endpoint = FlightEndpoint(runtime.services, asyncio.get_running_loop(), ANY_PORT, None)
        server = Serving(endpoint, runtime.services, endpoint.start())
        try:
            for sql, message in HOSTILE:
                answer = await runtime.sql(sql)
                assert answer.status_code == 400, (sql[:100], answer.text)
                assert message in answer.text, (sql[:100], answer.text)
                assert message in await _by_job(runtime, sql), sql[:100]
                assert message in await _by_flight(server, sql), sql[:100]
        finally:
            await endpoint.stop(5)
        assert await found(runtime, "bread")
        assert runtime.services.queries.admission.running == 0
