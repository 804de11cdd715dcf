"""Google against a local provider."""

import pytest

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.protocols.embedding import EmbedderSpec
from tests.kit.embedders import firsts
from tests.kit.json_provider import JsonProvider, ProviderAnswer, ProviderRequest, vector_of


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


def test_key_is_missing() -> None:
    with pytest.raises(ModelError, match=r"^embedding model 'mine'.* 'google_api_key' is missing"):
        EmbedderSpec("mine", "google", "", {}).build()
