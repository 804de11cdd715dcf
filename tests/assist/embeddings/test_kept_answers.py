"""The cache of `runtime.caching.embeddings`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caraway_assist.embeddings.kept_answers import KeptAnswers, key_of
from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_plugins.embeddings import vectors
from tests.kit.clocks import Clock
from tests.kit.json_provider import json_provider, openai_embeddings
from tests.kit.runtime import Running, running


def answer(floats: int, tokens: int = 3) -> EmbeddedTexts:
    return EmbeddedTexts(vectors.to_arrow(np.ones((1, floats), np.float32)), tokens)


def test_answers_are_limited_in_bytes_and_age() -> None:
    clock = Clock()
    kept = KeptAnswers(CacheSettings(8_000, 5), clock)
    kept.put(b"large", answer(1000))
    assert len(kept) == 0
    for key in (b"%d" % number for number in range(20)):
        kept.put(key, answer(100))
    assert kept.size_bytes <= 8_000
    assert kept.get(b"0") is None
    assert kept.get(b"19") is not None
    clock.now += 5
    assert kept.get(b"19") is None
    assert (kept.requests, kept.hits) == (3, 1)


def test_every_other_request_has_another_key() -> None:
    def key(items: Any, *, is_tokens: bool = False, dimensions: int | None = None) -> bytes:
        return key_of("model", items, is_tokens=is_tokens, dimensions=dimensions)

    keys = [
        key(["a"]), key(["a", ""]), key(["", "a"]), key(["a"], dimensions=2), key(["1 2"]),
        key([[1, 2]], is_tokens=True), key([[12]], is_tokens=True), key([[1], [2]], is_tokens=True),
        key(["\ud800"]), key_of("other", ["a"], is_tokens=False, dimensions=None),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key(["a"]) == key(["a"])


@pytest.mark.parametrize(
    ("section", "asked"),
    [("", 2), ("{embeddings: {enabled: true}}", 1), ("{embeddings: {enabled: false}}", 2),
     ("{embeddings: {max_size: 1KiB}}", 2)],
)  # fmt: skip
async def test_a_manifest_has_answers_kept(tmp_path: Path, section: str, asked: int) -> None:
    async def posted(runtime: Running) -> Any:
        body = {"model": "mine", "input": ["a", "b"]}
        answer = await runtime.api.post("/v1/embeddings", json=body)
        return answer.json()["data"], answer.json()["usage"]

    with json_provider(openai_embeddings) as provider:
        caching = f"runtime: {{caching: {section}}}\n" if section else ""
        params = f"{{endpoint: '{provider.url}', openai_api_key: k}}"
        models = f"embeddings: [{{from: 'openai:x', name: mine, params: {params}}}]\n"
        async with running(tmp_path, caching + models) as runtime:
            await runtime.services.embeddings.wait_settled()
            before = len(provider.requests)
            assert await posted(runtime) == await posted(runtime)
            assert len(provider.requests) - before == asked
