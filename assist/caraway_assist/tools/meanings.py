"""Vectors of what tools and tables are described by, so that they are ranked by meaning."""

from collections import OrderedDict
from collections.abc import Sequence

from caraway_ai.tools.tool_search import Embed, Vector
from caraway_assist.embeddings.service import Embeddings
from caraway_serving import spans

_MOST_KEPT = 4_096
_MOST_AT_ONCE = 256


class TextEmbedder:
    """Embeds texts with an embedding model of the runtime, and keeps the vectors."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._kept: OrderedDict[tuple[str, str, str], Vector] = OrderedDict()

    @property
    def embed(self) -> Embed | None:
        """Embed with the first model of the manifest that is loaded, or else with a built-in one.

        None if none is loaded: a ranking alone is not worth loading a model.
        """
        loaded = [state for state in self._embeddings.states.values() if state.loaded is not None]
        loaded.sort(key=lambda state: not state.declared.is_declared)
        if not loaded or (embedder := loaded[0].loaded) is None:
            return None
        name, identity = loaded[0].name, embedder.identity

        async def embed(texts: Sequence[str]) -> Sequence[Vector]:
            return await self._vectors(name, identity, texts)

        return embed

    async def _vectors(self, model: str, identity: str, texts: Sequence[str]) -> Sequence[Vector]:
        found: dict[str, Vector] = {}
        missing: list[str] = []
        for text in dict.fromkeys(texts):
            key = model, identity, text
            if (vector := self._kept.get(key)) is None:
                missing.append(text)
            else:
                self._kept.move_to_end(key)
                found[text] = vector
        span = spans.current.get() or spans.start(None)
        for start in range(0, len(missing), _MOST_AT_ONCE):
            some = missing[start : start + _MOST_AT_ONCE]
            embedded = await self._embeddings.embed(model, some, span.child())
            for text, vector in zip(some, embedded.vectors.to_pylist(), strict=True):
                found[text] = self._kept[model, identity, text] = vector
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return [found[text] for text in texts]
