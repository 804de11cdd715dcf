"""Limits of each key: one user leaves room for the others."""

from pathlib import Path

import httpx

from tests.kit.runtime import Running, running
from tests.kit.scripted_provider import scripted

MANIFEST = """
    runtime:
      auth: {{api-key: {{keys: ["ann", "bob"]}}}}
    models:
      - from: openai:gpt-4o
        name: first
        params: {{endpoint: {url}, openai_api_key: k, requests_per_minute_per_key: 1}}
      - from: openai:gpt-4o
        name: second
        params: {{endpoint: {url}, openai_api_key: k, tokens_per_day_per_key: 1}}
    workers:
      - {{name: either, models: [{{from: first, order: 1}}, {{from: second, order: 2}}]}}
"""


async def ask(runtime: Running, model: str, key: str) -> httpx.Response:
    asked = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return await runtime.api.post("/v1/chat/completions", json=asked, headers={"x-api-key": key})


async def test_each_key_has_a_share(tmp_path: Path) -> None:
    async with (
        scripted() as provider,
        running(tmp_path, MANIFEST.format(url=provider.url)) as runtime,
    ):
        assert (await ask(runtime, "first", "ann")).status_code == 200
        limited = await ask(runtime, "first", "ann")
        assert limited.status_code == 429 and int(limited.headers["retry-after"]) > 0
        assert "'requests_per_minute_per_key' for this key" in limited.json()["error"]["message"]
        # A worker passes to the next model, and no model rests: others may call it.
        assert (await ask(runtime, "either", "ann")).status_code == 200
        used_up = await ask(runtime, "second", "ann")
        assert used_up.status_code == 402
        assert used_up.json()["error"]["code"] == "insufficient_quota"
        assert (await ask(runtime, "either", "bob")).status_code == 200
        assert (await ask(runtime, "second", "bob")).status_code == 200
