"""Bedrock against a local provider."""

import pytest

from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from tests.kit.embedders import firsts
from tests.kit.json_provider import JsonProvider, ProviderAnswer, ProviderRequest, vector_of


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


def test_region_is_wrong() -> None:
    with pytest.raises(ModelError, match=r"^embedding model 'mine'.* 'aws_region'"):
        EmbedderSpec("mine", "bedrock", "", {"aws_region": "not a region"}).build()
