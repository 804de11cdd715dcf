"""Searches as work of the runtime: kept answers, limits, cancels, history and metrics."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from caraway_gateway.services import Services
from tests.kit import documents
from tests.kit.deadlines import eventually
from tests.kit.documents import DOCS, found, searched
from tests.kit.runtime import Running
from tests.kit.word_embedder import WordEmbedder

ASKED = {"text": "warm bread", "datasets": ["docs"], "limit": 2}


async def status(runtime: Running, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    answer = await runtime.api.post("/v1/search", json={**ASKED, **fields}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.headers.get("search-results-cache-status")


async def test_answers_are_kept_until_data_changes(tmp_path: Path) -> None:
    documents.write(tmp_path)
    caching = "    runtime: {caching: {search_results: {item_ttl: 1h}}}\n"
    async with searched(tmp_path, caching + DOCS) as runtime:
        assert await status(runtime) == "MISS"
        assert await status(runtime) == "HIT"
        assert await status(runtime, {"cache-control": "no-cache"}) == "BYPASS"
        assert await status(runtime, text="cold bread") == "MISS"
        assert await status(runtime, where="kind = 'food'") == "MISS"
        assert await status(runtime, limit=1) == "MISS"
        assert await status(runtime, where="now() > '2020-01-01'") is None
        assert await status(runtime, datasets=["public.docs"]) == "HIT"
        page = (await runtime.metrics.get("/metrics")).text
        assert "search_results_cache_hits_total 2.0" in page
        assert "search_requests_total 8.0" in page
        before = await found(runtime, "warm bread")
        runtime.services.queries.invalidate()
        runtime.services.catalog.moves += 1
        assert await status(runtime) == "MISS"
        assert await found(runtime, "warm bread") == before


async def test_the_cache_can_be_switched_off(tmp_path: Path) -> None:
    documents.write(tmp_path)
    caching = "    runtime: {caching: {search_results: {enabled: false}}}\n"
    async with searched(tmp_path, caching + DOCS) as runtime:
        assert await status(runtime) is None
        assert await status(runtime) is None


async def test_a_search_is_a_tree_of_tasks(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, DOCS) as runtime:
        trace = "0af7651916cd43dd8448eb211c80319c"
        headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        await status(runtime, headers, where="kind = 'food'")
        answer = await runtime.api.post("/v1/search", json={**ASKED, "where": "x"}, headers=headers)
        assert answer.status_code == 400
        sql = f"SELECT * FROM runtime.task_history WHERE trace_id = '{trace}'"
        tasks = (await runtime.sql(sql)).json()
    by_task = {each["task"]: each for each in tasks if each["error_message"] is None}
    assert set(by_task) == {"search", "vector_search", "text_search", "text_embed"}
    parents = {each["span_id"]: each["task"] for each in tasks}
    assert parents[by_task["vector_search"]["parent_span_id"]] == "search"
    assert parents[by_task["text_search"]["parent_span_id"]] == "search"
    assert parents[by_task["text_embed"]["parent_span_id"]] == "vector_search"
    assert by_task["search"]["input"] == "warm bread"
    assert dict(by_task["vector_search"]["labels"])["where"] == "kind = 'food'"
    (failed,) = [each for each in tasks if each["task"] == "search" and each["error_message"]]
    assert "column 'x' not found" in failed["error_message"]


async def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    documents.write(tmp_path)
    documents.write(tmp_path, "more")
    more = DOCS.replace("datasets:", "").replace("docs", "more")
    model = WordEmbedder()
    async with searched(tmp_path, DOCS + more, model) as runtime:
        await found(runtime, "warm bread", "docs", "more")
        await asyncio.gather(*(found(runtime, "cold bread", limit=n) for n in (1, 2, 3)))
    assert model.texts == ["warm bread", "cold bread"]


async def test_a_search_is_listed_and_cancelled(tmp_path: Path) -> None:
    documents.write(tmp_path)
    stuck = WordEmbedder()
    stuck.gate.clear()
    async with searched(tmp_path, DOCS, stuck) as runtime:
        work = asyncio.ensure_future(runtime.api.post("/v1/search", json=ASKED))

        async def listed() -> Any:
            return (await runtime.api.get("/v1/sql/active")).json()["queries"]

        (query,) = await eventually(listed, "the search is listed")
        assert query["sql_preview"] == "search: warm bread"
        await runtime.api.post(f"/v1/sql/{query['query_id']}/cancel")
        answer = await work
        assert (answer.status_code, answer.json()) == (499, {"error": "the query was cancelled"})
        assert await listed() == []
        assert runtime.services.queries.admission.running == 0
        stuck.gate.set()
        assert await found(runtime, "warm bread")


async def test_a_search_has_the_time_limit_of_statements(tmp_path: Path) -> None:
    documents.write(tmp_path)
    stuck = WordEmbedder()
    stuck.gate.clear()
    limit = "    runtime: {query: {timeout: 50ms}}\n"
    async with searched(tmp_path, limit + DOCS, stuck) as runtime:
        answer = await runtime.api.post("/v1/search", json=ASKED)
        assert answer.status_code == 504
        assert "raise runtime.query.timeout" in answer.json()["error"]
        stuck.gate.set()


async def test_a_runtime_that_stops_takes_no_search(tmp_path: Path) -> None:
    documents.write(tmp_path)

    def stop(services: Services) -> None:
        services.queries.is_stopping = True

    async with searched(tmp_path, DOCS) as runtime:
        stop(runtime.services)
        answer = await runtime.api.post("/v1/search", json=ASKED)
        assert answer.status_code == 503


@pytest.mark.parametrize("limit", [1, 2])
async def test_searches_wait_for_a_slot(tmp_path: Path, limit: int) -> None:
    documents.write(tmp_path)
    queue = f"    runtime: {{query: {{max_concurrent_queries: {limit}, max_queued_queries: 1}}}}\n"
    stuck = WordEmbedder()
    stuck.gate.clear()
    async with searched(tmp_path, queue + DOCS, stuck) as runtime:
        texts = [f"bread {n}" for n in range(limit + 2)]
        works = [
            asyncio.ensure_future(runtime.api.post("/v1/search", json={**ASKED, "text": text}))
            for text in texts
        ]
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = [each.result() for each in done]
        assert refused.status_code == 429 and "retry-after" in refused.headers
        stuck.gate.set()
        answers = await asyncio.gather(*works)
        assert sorted(each.status_code for each in answers) == [*[200] * (limit + 1), 429]
