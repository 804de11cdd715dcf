"""The vectors of the texts that are searched for: each text is embedded once by each model."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from caraway_core.concurrency import tasks
from caraway_core.protocols.embedding import EmbeddedTexts, Embedder
from caraway_serving import spans
from caraway_serving.spans import Span

_MOST_KEPT = 256
_Key = tuple[str, str, str]


class QueryEmbeddings(Protocol):
    """The embedding models of the manifest."""

    async def embedder(self, name: str) -> Embedder:
        """Return a model that is loaded.

        Raises:
            ModelError: it is loading, or cannot be loaded.
            NotFoundError: the manifest has no such model.
        """
        ...

    async def embed(self, name: str, items: Sequence[str], span: Span) -> EmbeddedTexts:
        """Embed texts, and record that as a task.

        Raises:
            ModelError: the model is not loaded, or failed.
            OverloadedError: too many texts wait for it.
        """
        ...


class QueryVectors:
    """Embeds texts to search for, and keeps the vectors of the last ones."""

    def __init__(self, embeddings: QueryEmbeddings) -> None:
        self.embeddings = embeddings
        self._kept: OrderedDict[_Key, Sequence[float]] = OrderedDict()
        self._waiting: dict[_Key, asyncio.Task[Sequence[float]]] = {}

    async def vector_of_text(self, text: str, model: str) -> Sequence[float]:
        """Return the vector of a text; requests for the same one share one call of the model.

        Raises:
            ModelError: the model is loading, or failed.
            OverloadedError: too many texts wait for the model.
        """
        embedder = await self.embeddings.embedder(model)
        key = model, embedder.identity, text
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        work = self._waiting.get(key)
        if work is None:
            work = self._waiting[key] = tasks.begin(self._embedded(text, model))
            work.add_done_callback(partial(self._ended, key))
        # One who goes away does not take the vector from the others.
        return await asyncio.shield(work)

    async def _embedded(self, text: str, model: str) -> Sequence[float]:
        span = spans.current.get() or spans.start(None)
        texts = await self.embeddings.embed(model, [text], span.child())
        return [float(each) for each in texts.vectors.flatten().to_pylist()]

    def _ended(self, key: _Key, work: "asyncio.Task[Sequence[float]]") -> None:
        del self._waiting[key]
        # All who waited may have gone away, so the failure is looked at here.
        if work.cancelled() or work.exception() is not None:
            return
        self._kept[key] = work.result()
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
