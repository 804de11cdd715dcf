"""Azure, Google and Bedrock against local providers."""

from collections.abc import Iterator

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import remote
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    ProviderRequest,
    json_provider,
    openai_embeddings,
    vector_of,
)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider


def firsts(embedder: Embedder, texts: list[str]) -> list[float]:
    rows = embedder.embed(texts).vectors.to_pylist()
    embedder.close()
    return [row[0] for row in rows]


def test_azure(provider: JsonProvider) -> None:
    params = {"endpoint": f"{provider.url}/openai", "azure_api_key": "k"}
    assert firsts(EmbedderSpec("a", "azure", "my deploy", params).build(), ["abc"]) == [3.0]
    params = {"endpoint": provider.url, "azure_entra_token": "t", "azure_api_version": "v"}
    assert firsts(EmbedderSpec("a", "azure", "d", params).build(), ["abc"]) == [3.0]
    first, second = provider.requests
    at = "/openai/deployments/{}/embeddings?api-version={}"
    assert first.path == at.format("my%20deploy", "2024-10-21")
    assert first.headers["api-key"] == "k"
    assert second.path == at.format("d", "v")
    assert second.headers["authorization"] == "Bearer t"


def google(request: ProviderRequest) -> ProviderAnswer:
    texts = [each["content"]["parts"][0]["text"] for each in request.body["requests"]]
    size = request.body["requests"][0].get("outputDimensionality", 4)
    return ProviderAnswer({"embeddings": [{"values": vector_of(text, size)} for text in texts]})


def test_google(provider: JsonProvider) -> None:
    provider.answer = google
    params = {"endpoint": provider.url, "google_api_key": "k", "dimensions": "8"}
    embedder = EmbedderSpec("g", "google", "", params).build()
    assert embedder.dimensions == 8
    assert firsts(embedder, ["x" * size for size in range(1, 102)])[-1] == 101.0
    assert [len(each.body["requests"]) for each in provider.requests] in ([100, 1], [1, 100])
    sent = provider.requests[0]
    assert sent.path == "/models/gemini-embedding-001:batchEmbedContents"
    assert sent.headers["x-goog-api-key"] == "k" and "k=" not in sent.path
    assert sent.body["requests"][0]["model"] == "models/gemini-embedding-001"
    again = EmbedderSpec("g", "google", "", params).build()
    with pytest.raises(ModelInputError, match="takes texts only, not tokens"):
        again.embed_tokens([[1]])
    provider.answer = lambda request: ProviderAnswer({"embeddings": [{}]})
    with pytest.raises(ModelError, match="no list of embeddings"):
        again.embed(["a"])
    again.close()


def titan(request: ProviderRequest) -> ProviderAnswer:
    size = request.body.get("dimensions", 4)
    vector = vector_of(request.body["inputText"], size)
    return ProviderAnswer({"embedding": vector, "inputTextTokenCount": 2})


def cohere(request: ProviderRequest) -> ProviderAnswer:
    return ProviderAnswer({"embeddings": [vector_of(text) for text in request.body["texts"]]})


def bedrock(provider: JsonProvider, model: str = "", **params: str) -> Embedder:
    values = {
        "endpoint": provider.url,
        "aws_region": "eu-central-1",
        "aws_access_key_id": "AKIDEXAMPLE",
        "aws_secret_access_key": "very-secret",
        **params,
    }
    return EmbedderSpec("b", "bedrock", model, values).build()


def test_titan_of_bedrock(provider: JsonProvider) -> None:
    provider.answer = titan
    embedder = bedrock(provider, dimensions="8")
    answer = embedder.embed(["abc", "de"])
    assert [row[0] for row in answer.vectors.to_pylist()] == [3.0, 2.0]
    assert (answer.token_count, answer.vectors.type.list_size) == (4, 8)
    sent = provider.requests[0]
    assert sent.path == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    assert "AKIDEXAMPLE/" in sent.headers["authorization"]
    assert "eu-central-1/bedrock" in sent.headers["authorization"]
    assert "very-secret" not in str(sent) + embedder.identity
    with pytest.raises(ModelInputError, match="takes texts only"):
        embedder.embed_tokens([[1]])
    embedder.close()


def test_cohere_of_bedrock(provider: JsonProvider) -> None:
    provider.answer = cohere
    embedder = bedrock(provider, "cohere.embed-english-v3")
    assert firsts(embedder, ["x" * size for size in range(1, 100)])[-1] == 99.0
    assert sorted(len(each.body["texts"]) for each in provider.requests) == [3, 96]


@pytest.mark.parametrize(
    ("status", "kind", "error", "code"),
    [
        (403, "AccessDeniedException", ModelError, "auth"),
        (404, "ResourceNotFoundException", ModelError, "not_found"),
        (400, "ValidationException", ModelInputError, "invalid"),
        (500, "InternalServerException", ModelAwayError, "unavailable"),
    ],
)
def test_failures_of_bedrock(
    provider: JsonProvider, status: int, kind: str, error: type[ModelError], code: str
) -> None:
    headers = {"x-amzn-errortype": kind, "retry-after": "60"}
    provider.answer = lambda request: ProviderAnswer({"message": "secret words"}, status, headers)
    embedder = bedrock(provider)
    with pytest.raises(error) as caught:
        embedder.embed(["a"])
    assert caught.value.code == f"model.{code}"
    assert "secret" not in caught.value.message
    assert len(provider.requests) == 1
    embedder.close()


def test_a_rate_limit_of_bedrock_is_tried_again(provider: JsonProvider) -> None:
    provider.answer = titan
    limit = {"x-amzn-errortype": "ThrottlingException", "retry-after": "0"}
    provider.first = [ProviderAnswer({"message": "slow down"}, 429, limit)]
    assert firsts(bedrock(provider), ["abc"]) == [3.0]


@pytest.mark.parametrize(
    ("provider_name", "model", "params", "said"),
    [
        ("azure", "", {"endpoint": "http://a"}, "names no deployment; write 'azure:<deployment>'"),
        ("azure", "d", {"azure_api_key": "k"}, "the param 'endpoint' is missing"),
        ("azure", "d", {"endpoint": "http://a"}, "the param 'azure_api_key' is missing"),
        ("google", "", {}, "the param 'google_api_key' is missing"),
        ("bedrock", "", {"aws_region": "not a region"}, "check the param 'aws_region'"),
    ],
)
def test_wrong_params(provider_name: str, model: str, params: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError, match=r"^embedding model 'mine'") as caught:
        EmbedderSpec("mine", provider_name, model, params).build()
    assert said in caught.value.message
