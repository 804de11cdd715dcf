"""Models of providers: batches, bounded concurrency, retries, and texts that are too long."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.embedding import EmbeddedTexts, EmbedderSpec
from caraway_plugins.embeddings import vectors
from caraway_plugins.embeddings.params import EmbedderParams

Item = str | Sequence[int]

TIMEOUT_S = 30.0
_DELAYS = Delays(0.5, 20.0, jitter=0.2)
_ATTEMPTS = 4
_LONGEST_WAIT_S = 20.0
_LEAST_LATER_S = 2
_MOST_BATCH = 2048
_MOST_CHARACTERS = 200_000
"""Of one request; providers limit its tokens."""
_SHORTEST = 64
"""A text is not cut further than to this many characters."""


@dataclass(frozen=True, slots=True)
class RemoteVectors:
    """What a provider returned for one request: rows of numbers, and the tokens it counted."""

    rows: list[object]
    token_count: int


class ProviderWire(Protocol):
    """How one provider is asked. Threads share it."""

    @property
    def place(self) -> str:
        """Which model of which provider; it has no secret."""
        ...

    @property
    def most_texts(self) -> int:
        """The most texts of one request."""
        ...

    def request(self, items: Sequence[Item], dimensions: int | None) -> RemoteVectors:
        """Send one request.

        Raises:
            ModelAwayError: the same request may succeed later, at once where its time is 0.
            ModelError: it cannot.
        """
        ...

    def close(self) -> None: ...


class RemoteEmbedder:
    """Embeds through a provider."""

    is_remote = True
    is_quick = False

    def __init__(
        self,
        spec: EmbedderSpec,
        params: EmbedderParams,
        wire: ProviderWire,
        delays: Delays = _DELAYS,
    ) -> None:
        """Make the client; nothing is sent. Raises ModelError if a param is wrong."""
        self._name = spec.name
        self._wire = wire
        self._delays = delays
        self._given = params.count("dimensions", 0, 65_536) or None
        self._batch = min(params.count("max_batch_size", 128, _MOST_BATCH), wire.most_texts)
        self._concurrency = params.count("max_concurrency", 4, 64)
        self._threads: ThreadPoolExecutor | None = None
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._dimensions = self._given
        self._place = f"{spec.provider} {wire.place}"

    @property
    def identity(self) -> str:
        """The place and the length of vectors, since a provider may replace a model by another.

        Raises:
            ModelError: the provider was never asked, and cannot be asked now.
        """
        return f"{self._place} {self.dimensions}"

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        return self._embed(texts, dimensions)

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        return self._embed(tokens, dimensions)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)
        self._wire.close()

    def _embed(self, items: Sequence[Item], dimensions: int | None) -> EmbeddedTexts:
        if not items:
            return EmbeddedTexts(vectors.to_arrow(np.empty((0, self.dimensions))), 0)
        wanted = dimensions or self._given
        batches = list(_batches(items, self._batch))

        def ask(batch: Sequence[Item]) -> RemoteVectors:
            return self._ask(batch, wanted)

        answers = [ask(batches[0])] if len(batches) == 1 else list(self._pool().map(ask, batches))
        rows = [row for answer in answers for row in answer.rows]
        matrix = vectors.to_matrix(self._name, rows, len(items))
        expected = dimensions or self._dimensions or matrix.shape[1]
        if matrix.shape[1] != expected:
            raise ModelError(
                f"embedding model '{self._name}' returned vectors of {matrix.shape[1]} "
                f"dimensions instead of {expected}; if the provider has another model now, restart "
                "this process"
            )
        if dimensions is None:
            self._dimensions = expected
        return EmbeddedTexts(vectors.to_arrow(matrix), sum(each.token_count for each in answers))

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._concurrency, "embedding")
            return self._threads

    def _ask(self, batch: Sequence[Item], dimensions: int | None) -> RemoteVectors:
        """Send one batch; if a text is too long, send each alone, and cut those."""
        try:
            return self._try(lambda: self._wire.request(batch, dimensions))
        except ModelInputError as exc:
            if exc.type != "context_length":
                raise
            if len(batch) > 1:
                each = [self._ask([item], dimensions) for item in batch]
                rows = [row for answer in each for row in answer.rows]
                return RemoteVectors(rows, sum(answer.token_count for answer in each))
            if len(batch[0]) <= _SHORTEST or not isinstance(batch[0], str):
                raise
            return self._ask([batch[0][: len(batch[0]) // 2]], dimensions)

    def _try(self, request: Callable[[], RemoteVectors]) -> RemoteVectors:
        again = Backoff(self._delays)
        while True:
            try:
                return request()
            except RuntimeError as exc:  # A client that is closed raises no error of its own.
                if not self._closed.is_set():
                    raise
                raise ModelAwayError(
                    f"embedding model '{self._name}' is being replaced; try again"
                ) from exc
            except ModelAwayError as exc:
                wait_s = max(again.failed(), float(exc.retry_after_s))
                is_last = again.failures >= _ATTEMPTS or exc.retry_after_s > _LONGEST_WAIT_S
                if is_last or self._closed.wait(wait_s):
                    later_s = max(exc.retry_after_s, _LEAST_LATER_S)
                    raise ModelAwayError(exc.message, exc.type, later_s) from exc


def _batches(items: Sequence[Item], most: int) -> list[list[Item]]:
    batches: list[list[Item]] = [[]]
    characters = 0
    for item in items:
        characters += len(item)
        if batches[-1] and (len(batches[-1]) >= most or characters > _MOST_CHARACTERS):
            batches.append([])
            characters = len(item)
        batches[-1].append(item)
    return batches
