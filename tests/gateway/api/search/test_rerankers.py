"""Rerankers of the manifest in statements: cross-encoders, chat models, and what goes wrong."""

import json
from pathlib import Path
from typing import Any

from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_core.errors import ModelAwayError, ModelError
from tests.kit import cross_encoders, documents
from tests.kit.documents import DOCS, searched
from tests.kit.runtime import Running
from tests.kit.scripted_provider import completion

MANIFEST = f"""{DOCS}
    models:
      - {{from: 'openai:gpt-4o', name: chat, params: {{openai_api_key: k, endpoint: 'http://127.0.0.1:1/v1'}}}}
    rerankers:
      - {{from: 'file:cross', name: cross}}
      - {{from: 'builtin:lexical', name: words}}
      - {{from: 'model:chat', name: judge}}
      - {{from: 'file:nothing', name: broken}}
      - {{from: 'cohere:x', name: secret, params: {{cohere_api_key: '${{env:NOT_THERE}}'}}}}
"""
CALL = "rerank(input => TABLE(SELECT id, body FROM docs), query => 'warm butter', col => body"


async def refused(runtime: Running, model: str, status: int, sql: str = "") -> str:
    answer = await runtime.sql(sql or f"SELECT id FROM {CALL}, model => '{model}')")
    assert answer.status_code == status, answer.text
    return str(answer.text)


async def ranked(runtime: Running, model: str) -> list[dict[str, Any]]:
    sql = f"SELECT id, rerank_score FROM {CALL}, model => '{model}')"
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


async def test_statements_name_rerankers(tmp_path: Path) -> None:
    documents.write(tmp_path)
    cross_encoders.write(tmp_path / "cross")
    async with searched(tmp_path, MANIFEST) as runtime:
        await runtime.services.rerankers.wait_settled()
        rows = await ranked(runtime, "cross")
        assert rows[0]["id"] == 3 and rows[0]["rerank_score"] > rows[1]["rerank_score"]
        assert len(rows) == 6
        assert (await ranked(runtime, "words"))[0]["id"] == 3
        message = await refused(runtime, "crss", 400)
        assert "rerank: no reranker 'crss'; did you mean 'cross'? Known: broken, cross" in message
        explained = f"EXPLAIN SELECT id FROM {CALL}, model => 'crss')"
        assert "no reranker 'crss'" in await refused(runtime, "", 400, explained)
        assert "reranker 'broken': " in await refused(runtime, "broken", 500)
        assert "'NOT_THERE' was not found" in await refused(runtime, "secret", 500)
        state = runtime.services.rerankers.states["cross"]
        state.loaded = None
        answer = await runtime.sql(f"SELECT id FROM {CALL}, model => 'cross')")
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert answer.text == "reranker 'cross' is still loading; try again"
        page = (await runtime.metrics.get("/metrics")).text
        for sample in (
            'reranker_requests_total{reranker="cross"} 2.0',
            'reranker_texts_total{reranker="cross"} 6.0',
            'reranker_failures_total{error="ModelAwayError",reranker="cross"} 1.0',
            'reranker_duration_ms_count{reranker="words"} 1.0',
            'reranker_load_state{reranker="words"} 1.0',
            'reranker_load_state{reranker="broken"} 3.0',
        ):
            assert sample in page


async def test_a_chat_model_judges(tmp_path: Path) -> None:
    documents.write(tmp_path)
    cross_encoders.write(tmp_path / "cross")
    asked: list[tuple[str, ChatRequest]] = []
    fails: list[ModelError] = []

    async def ask(name: str, request: ChatRequest) -> ChatCompletion:
        asked.append((name, request))
        if fails:
            raise fails[0]
        texts = json.loads(request["messages"][1]["content"])["texts"]
        return completion(json.dumps([90 if "piano" in text else 5 for text in texts]))

    async with searched(tmp_path, MANIFEST) as runtime:
        # The key of its provider is wrong, so the model itself cannot be called.
        await runtime.services.models.states["chat"].settled.wait()
        answer = await runtime.sql(f"SELECT id FROM {CALL}, model => 'judge')")
        assert answer.status_code in (500, 503) and "model 'chat'" in answer.text
        runtime.services.rerankers.ask = ask
        rows = await ranked(runtime, "judge")
        assert [(row["id"], row["rerank_score"]) for row in rows[:2]] == [(5, 0.9), (1, 0.05)]
        assert [name for name, _ in asked] == ["chat"]
        fails.append(ModelAwayError("the provider limits the rate", retry_after_s=7))
        answer = await runtime.sql(f"SELECT id FROM {CALL}, model => 'judge')")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
        fails[0] = ModelError("the provider denied access (401)", "auth")
        message = await refused(runtime, "judge", 500)
        assert message == "reranker 'judge', model 'chat': the provider denied access (401)"
