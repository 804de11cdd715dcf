"""Rerankers of Cohere, and of servers with the same request: Jina, vLLM, Infinity, llama.cpp."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.reranking import LoadedReranker, RerankerSpec
from caraway_plugins.embeddings.http_wire import JsonClient
from caraway_plugins.reranking.params import RerankerParams

_ENDPOINT = "https://api.cohere.com/v2"
_MODEL = "rerank-v3.5"
_TIMEOUT_S = 30.0
_BATCH = 100
_AT_ONCE = 4
_LONGEST_TEXT = 16_384
"""Characters; no such model reads more of a text."""
_DELAYS = Delays(0.5, 5.0, jitter=0.2)
_ATTEMPTS = 3
_LONGEST_WAIT_S = 10.0


def build(spec: RerankerSpec) -> LoadedReranker:
    """Make a client. Without an `endpoint` it needs a key.

    Raises:
        ModelError: a param is missing or wrong.
    """
    params = RerankerParams(spec)
    endpoint = params.url("endpoint", _ENDPOINT)
    is_own = endpoint == _ENDPOINT
    key = params.needed("cohere_api_key") if is_own else params.text("cohere_api_key")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = JsonClient(params.title, headers, params.seconds("client_timeout", _TIMEOUT_S))
    return RemoteReranker(params.title, client, f"{endpoint}/rerank", spec.model or _MODEL)


class RemoteReranker:
    """Scores texts by `POST /rerank`."""

    def __init__(
        self, title: str, client: JsonClient, url: str, model: str, delays: Delays = _DELAYS
    ) -> None:
        self._title = title
        self._client = client
        self._url = url
        self._model = model
        self._delays = delays
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(_AT_ONCE, "reranking")

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the relevance of each text, as the provider judges it."""
        cut = [text[:_LONGEST_TEXT] for text in texts]
        batches = [cut[first : first + _BATCH] for first in range(0, len(cut), _BATCH)]
        short = query[:_LONGEST_TEXT]
        try:
            found = list(self._threads.map(lambda batch: self._tried(short, batch), batches))
        except RuntimeError as exc:  # A closed pool or client raises no error of its own.
            if not self._closed.is_set():
                raise
            raise ModelAwayError(f"{self._title} is being replaced; try again") from exc
        return list(chain.from_iterable(found))

    def close(self) -> None:
        """End the threads and close connections."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def _tried(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        again = Backoff(self._delays)
        while True:
            try:
                return self._asked(query, texts)
            except ModelAwayError as exc:
                wait_s = max(again.failed(), float(exc.retry_after_s))
                is_last = again.failures >= _ATTEMPTS or exc.retry_after_s > _LONGEST_WAIT_S
                if is_last or self._closed.wait(wait_s):
                    raise

    def _asked(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        body = {"model": self._model, "query": query, "documents": texts, "top_n": len(texts)}
        answer: Any = self._client.post(self._url, body)
        scores: list[float | None] = [None] * len(texts)
        try:
            for each in answer["results"]:
                index = each["index"]
                if not isinstance(index, int) or not 0 <= index < len(texts):
                    raise ValueError("no such text")
                scores[index] = float(each["relevance_score"])
        except (KeyError, TypeError, ValueError) as exc:
            raise self._without_scores() from exc
        known = [score for score in scores if score is not None]
        if len(known) != len(texts):
            raise self._without_scores()
        return known

    def _without_scores(self) -> ModelError:
        return ModelError(f"{self._title}: the provider's answer has no score for each text")
