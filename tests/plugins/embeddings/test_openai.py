"""OpenAI's protocol against a local provider: batches, retries, long texts, failures."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import http_wire, remote
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    ProviderRequest,
    json_provider,
    openai_embeddings,
)

KEY = "sk-very-secret"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider


def model(provider: JsonProvider, name: str = "m1", **params: str) -> Embedder:
    values = {"endpoint": f"{provider.url}/v1/", "openai_api_key": KEY, **params}
    return EmbedderSpec("mine", "openai", name, values).build()


def firsts(embedder: Embedder, texts: list[str]) -> list[float]:
    return [row[0] for row in embedder.embed(texts).vectors.to_pylist()]


def test_a_request_and_its_answer(provider: JsonProvider) -> None:
    embedder = model(provider, openai_org_id="o", openai_project_id="p")
    answer = embedder.embed(["one", "three"])
    assert [row[0] for row in answer.vectors.to_pylist()] == [3.0, 5.0]
    assert (answer.token_count, embedder.dimensions) == (8, 4)
    (sent,) = provider.requests
    assert (sent.method, sent.path) == ("POST", "/v1/embeddings")
    assert sent.body == {"model": "m1", "input": ["one", "three"], "encoding_format": "float"}
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert (sent.headers["openai-organization"], sent.headers["openai-project"]) == ("o", "p")
    assert KEY not in embedder.identity and "m1" in embedder.identity
    embedder.close()


def test_dimensions_and_tokens_are_passed_on(provider: JsonProvider) -> None:
    embedder = model(provider)
    assert embedder.embed(["a"], 8).vectors.type.list_size == 8
    assert embedder.dimensions == 4
    assert embedder.embed_tokens([[1, 2, 3]]).vectors.to_pylist()[0][0] == 3.0
    fixed = model(provider, dimensions="6")
    assert fixed.dimensions == 6
    before = len(provider.requests)
    assert len(fixed.embed([]).vectors) == 0 and len(provider.requests) == before
    assert fixed.embed(["a"]).vectors.type.list_size == 6
    assert fixed.identity != embedder.identity
    for each in (embedder, fixed):
        each.close()


def test_a_model_of_another_length_is_another_model(provider: JsonProvider) -> None:
    """A provider may have another model under the same name, whose vectors compare with none."""
    before, same = model(provider), model(provider)

    def longer(request: ProviderRequest) -> ProviderAnswer:
        body = {**request.body, "dimensions": 7}
        return openai_embeddings(dataclasses.replace(request, body=body))

    assert before.identity == same.identity
    provider.answer = longer
    after = model(provider)
    assert after.identity != before.identity and after.dimensions == 7
    with pytest.raises(ModelError, match="7 dimensions instead of 4; if the provider has another"):
        before.embed(["a"])
    for each in (before, same, after):
        each.close()


def test_texts_are_sent_in_batches_and_stay_in_order(provider: JsonProvider) -> None:
    embedder = model(provider, max_batch_size="3", max_concurrency="2")
    texts = ["x" * size for size in range(1, 21)]
    assert firsts(embedder, texts) == [float(size) for size in range(1, 21)]
    assert sorted(len(each.body["input"]) for each in provider.requests) == [2, 3, 3, 3, 3, 3, 3]
    provider.requests.clear()
    large = model(provider)
    assert firsts(large, ["x" * 150_000] * 3) == [150_000.0] * 3
    assert [len(each.body["input"]) for each in provider.requests] == [1, 1, 1]
    for each in (embedder, large):
        each.close()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_passing_failures_are_tried_again(provider: JsonProvider, status: int) -> None:
    provider.first = [ProviderAnswer({"error": {}}, status, {"retry-after": "0"})] * 2
    embedder = model(provider)
    assert firsts(embedder, ["abc"]) == [3.0]
    assert len(provider.requests) == 3
    provider.first = [ProviderAnswer({"error": {}}, status)] * 9
    with pytest.raises(ModelAwayError) as caught:
        embedder.embed(["a"])
    assert (len(provider.first), caught.value.retry_after_s) == (5, 2)
    embedder.close()


def test_a_limit_that_stays_is_an_error_with_a_time(provider: JsonProvider) -> None:
    provider.first = [ProviderAnswer({}, 429, {"retry-after": "77"})]
    embedder = model(provider)
    with pytest.raises(ModelAwayError, match="'mine': the provider limits the rate") as caught:
        embedder.embed(["a"])
    assert (caught.value.retry_after_s, caught.value.code) == (77, "model.rate_limit")
    assert len(provider.requests) == 1
    embedder.close()


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (401, {"error": {"message": f"bad key {KEY}"}}, "auth", "denied access (401); check the"),
        (403, {}, "auth", "denied access (403)"),
        (404, {}, "not_found", "has no such model or address (404); check 'from'"),
        (400, {"error": {"message": KEY}}, "invalid", "the provider refused the input (400)"),
        (429, {"error": {"code": "insufficient_quota"}}, "quota", "quota is used up"),
        (302, {}, "failed", "answered with the status 302"),
        (200, b"<html>", "failed", "the provider's answer is not a JSON object"),
        (200, [1], "failed", "the provider's answer is not a JSON object"),
        (200, {"data": 3}, "failed", "the provider's answer has no list of embeddings"),
        (200, {"data": []}, "failed", "did not return 1 vectors of one length"),
        (200, {"data": [{"index": 0, "embedding": "x"}]}, "failed", "did not return 1 vectors"),
        (200, {"data": [{"index": 0, "embedding": [float("nan")]}]}, "failed", "vector with NaN"),
    ],
)
def test_lasting_failures_have_codes_and_no_words_of_the_provider(
    provider: JsonProvider, status: int, body: Any, code: str, said: str
) -> None:
    provider.answer = lambda request: ProviderAnswer(body, status)
    embedder = model(provider)
    with pytest.raises(ModelError) as caught:
        embedder.embed(["a"])
    assert caught.value.code == f"model.{code}"
    assert said in caught.value.message and caught.value.message.startswith(
        "embedding model 'mine'"
    )
    assert KEY not in caught.value.message
    assert len(provider.requests) == 1
    embedder.close()


def test_a_text_that_is_too_long_is_cut(provider: JsonProvider) -> None:
    def bounded(request: ProviderRequest) -> ProviderAnswer:
        if max(map(len, request.body["input"])) > 1000:
            return ProviderAnswer({"error": {"code": "context_length_exceeded"}}, 400)
        return openai_embeddings(request)

    provider.answer = bounded
    embedder = model(provider)
    assert firsts(embedder, ["a" * 3000, "b" * 10]) == [750.0, 10.0]
    with pytest.raises(ModelInputError) as caught:
        embedder.embed_tokens([[1] * 2000])
    assert caught.value.code == "model.context_length"
    embedder.close()


def test_vectors_of_another_length_are_refused(provider: JsonProvider) -> None:
    embedder = model(provider)
    assert embedder.dimensions == 4
    provider.answer = lambda request: ProviderAnswer({"data": [{"index": 0, "embedding": [1.0]}]})
    with pytest.raises(ModelError, match="vectors of 1 dimensions instead of 4"):
        embedder.embed(["a"])
    embedder.close()


def test_a_provider_that_is_away_or_slow(provider: JsonProvider) -> None:
    embedder = model(provider)
    provider.shutdown()
    provider.server_close()
    with pytest.raises(ModelAwayError, match="the provider cannot be reached: ConnectError"):
        embedder.embed(["a"])
    embedder.close()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "the param 'openai_api_key' is missing"),
        ({"endpoint": "ftp://a"}, "'endpoint' must be http://HOST or https://HOST"),
        ({"endpoint": "http://u:p@a"}, "'endpoint' must not contain credentials"),
        ({"endpoint": "http://[a"}, "'endpoint' must be http://HOST"),
        ({"endpoint": "http://a", "client_timeout": "0"}, "'client_timeout' must be more than 0"),
        ({"endpoint": "http://a", "client_timeout": "x"}, "'client_timeout': 'x' is not a dura"),
        ({"endpoint": "http://a", "dimensions": "-1"}, "'dimensions' must be a whole number"),
        ({"api_key": KEY}, "no openai param 'api_key'; did you mean 'openai_api_key'?"),
    ],
)
def test_wrong_params(params: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError) as caught:
        EmbedderSpec("mine", "openai", "", params).build()
    assert said in caught.value.message and KEY not in caught.value.message


def test_times_of_retry_after() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    given = ["7", "0", "99999999", "Thu, 01 Jan 2026 00:00:09 GMT", "soon", "", "-1",
             "Wed, 31 Dec 2025 00:00:00 GMT"]  # fmt: skip
    read = [http_wire.retry_after_s({"retry-after": text}, now) for text in given]
    assert read == [7, 0, 3600, 10, 0, 0, 0, 0]


def test_another_implementation_of_the_protocol(llmock: Any) -> None:
    llmock.rate_limit(times=1, retry_after=0.1)
    params = {"endpoint": llmock.base_url("openai"), "openai_api_key": "k"}
    embedder = EmbedderSpec("mine", "openai", "text-embedding-3-small", params).build()
    answer = embedder.embed(["one", "two"])
    assert np.array(answer.vectors.to_pylist()).shape == (2, 1536)
    embedder.close()
