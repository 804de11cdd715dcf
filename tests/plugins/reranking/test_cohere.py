"""The request of Cohere against a local provider: batches, order, retries and failures."""

from collections.abc import Iterator

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.reranking import LoadedReranker, RerankerSpec
from caraway_plugins.reranking import cohere
from tests.kit.json_provider import JsonProvider, ProviderAnswer, ProviderRequest, json_provider

KEY = "co-very-secret"


def answer(request: ProviderRequest) -> ProviderAnswer:
    """A text is as relevant as it is long; the best come first."""
    scored = [(len(text), index) for index, text in enumerate(request.body["documents"])]
    best = sorted(scored, reverse=True)
    results = [{"index": index, "relevance_score": score} for score, index in best]
    return ProviderAnswer({"results": results})


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(cohere.RemoteReranker.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(answer) as provider:
        yield provider


def reranker(provider: JsonProvider) -> LoadedReranker:
    params = {"endpoint": f"{provider.url}/v2/", "cohere_api_key": KEY}
    return RerankerSpec("mine", "cohere", "rerank-v3.5", params).build()


def test_scores_are_in_the_order_of_the_texts(provider: JsonProvider) -> None:
    asked = reranker(provider)
    assert asked.scores("q", ["aa", "", "b"]) == [2.0, 0.0, 1.0]
    (sent,) = provider.requests
    assert (sent.method, sent.path) == ("POST", "/v2/rerank")
    assert sent.body == {
        "model": "rerank-v3.5", "query": "q", "documents": ["aa", "", "b"], "top_n": 3,
    }  # fmt: skip
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert asked.scores("q", ["x" * size for size in range(250)]) == [*map(float, range(250))]
    assert asked.scores("q", ["x" * 1_000_000]) == [16_384.0]
    asked.close()
    with pytest.raises(ModelAwayError, match="reranker 'mine' is being replaced"):
        asked.scores("q", ["a"])


def test_passing_failures_are_tried_again(provider: JsonProvider) -> None:
    asked = reranker(provider)
    provider.first = [ProviderAnswer({}, 503), ProviderAnswer({}, 429)]
    assert asked.scores("q", ["a"]) == [1.0]
    provider.first = [ProviderAnswer({}, 500)] * 9
    with pytest.raises(ModelAwayError, match="reranker 'mine': the provider failed"):
        asked.scores("q", ["a"])
    assert len(provider.first) == 6
    asked.close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"message": KEY}, "denied access"),
        (404, {}, "no such model or address"),
        (200, [], "not a JSON object"),
        (200, {}, "no score for each text"),
        (200, {"results": []}, "no score for each text"),
        (200, {"results": [{"index": 7, "relevance_score": 1}]}, "no score for each text"),
        (200, {"results": [{"index": 0, "relevance_score": None}]}, "no score for each text"),
        (200, {"results": [{"index": "0", "relevance_score": 1}]}, "no score for each text"),
    ],
)
def test_answers_that_are_no_scores(
    provider: JsonProvider, status: int, body: object, said: str
) -> None:
    asked = reranker(provider)
    provider.first = [ProviderAnswer(body, status)]
    with pytest.raises(ModelError) as caught:
        asked.scores("q", ["a"])
    assert said in caught.value.message and KEY not in caught.value.message
    asked.close()


def test_a_key_is_needed_for_cohere_itself() -> None:
    with pytest.raises(ModelError, match="the param 'cohere_api_key' is missing"):
        RerankerSpec("mine", "cohere", "").build()
