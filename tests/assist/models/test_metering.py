"""Calls are counted and recorded; their content is recorded only if the manifest says so."""

from pathlib import Path
from typing import Any

import openai
import pytest
from prometheus_client.core import Metric
from starlette.responses import JSONResponse

from caraway_gateway.metrics import models as model_metrics
from caraway_serving.metric_families import Families
from tests.kit.models import manifest, served
from tests.kit.scripted_provider import chunk, scripted

SECRET: Any = [{"role": "user", "content": "a private question"}]
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}


async def test_calls_are_counted_and_recorded_without_their_content(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        create: Any = caraway.client.chat.completions.create
        await create(model="chat", messages=SECRET)
        provider.streams = [[chunk("private answer"), chunk(finish="stop"), USAGE]]
        assert [c async for c in await create(model="chat", messages=SECRET, stream=True)]
        provider.answers = [JSONResponse({}, 500)]
        with pytest.raises(openai.InternalServerError):
            await create(model="chat", messages=SECRET)
        rows = caraway.history.table(None).to_pylist()
        samples = {
            (sample.name, tuple(sample.labels.values())): sample.value
            for family in model_metrics.collect(caraway.models, Families(""))
            if isinstance(family, Metric)
            for sample in family.samples
        }
    assert [row["task"] for row in rows] == ["ai_completion", "ai_chat"] * 3
    for inner, outer in zip(rows[::2], rows[1::2], strict=True):
        assert inner["parent_span_id"] == outer["span_id"]
        assert inner["trace_id"] == outer["trace_id"]
    assert "private" not in str(rows)
    streamed = dict(rows[2]["labels"])
    assert (streamed["prompt_tokens"], streamed["completion_tokens"]) == ("5", "2")
    assert float(streamed["first_token_ms"]) > 0
    assert dict(rows[4]["labels"])["error_code"] == "model.failed"
    assert "status 500" in rows[4]["error_message"]
    assert samples["llm_requests_total", ("chat",)] == 3
    assert samples["llm_failures_total", ("chat", "model.failed")] == 1
    assert samples["llm_prompt_tokens_total", ("chat",)] == 8
    assert samples["llm_completion_tokens_total", ("chat",)] == 6
    assert samples["llm_first_token_ms_count", ("chat",)] == 1
    assert samples["llm_active_requests", ("chat",)] == 0
    assert samples["model_load_state", ("chat",)] == 1


async def test_content_is_captured_where_the_manifest_asks_for_it(tmp_path: Path) -> None:
    setting = "runtime: {task_history: {captured_output: truncated}}\n"
    async with scripted() as provider:
        async with served(tmp_path, manifest(provider.url) + setting) as caraway:
            create: Any = caraway.client.chat.completions.create
            provider.streams = [[chunk("private "), chunk("answer", "stop"), USAGE]]
            assert [c async for c in await create(model="chat", messages=SECRET, stream=True)]
            row = caraway.history.table(None).to_pylist()[-1]
    assert "a private question" in row["input"]
    assert row["captured_output"] == "private answer"
