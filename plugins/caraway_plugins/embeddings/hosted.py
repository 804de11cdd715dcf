"""Embedding models that executors host: what crosses to them, and how calls are written."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import orjson

from caraway_core.protocols.embedding import EmbeddedTexts, Embedder, EmbedderSpec
from caraway_core.protocols.hosting import HostedModel, HostedSpec, HostRoom
from caraway_plugins.embeddings import vectors


@dataclass(frozen=True, slots=True)
class HostedEmbedderSpec(HostedSpec):
    """An embedding model for executors, which embeds as many texts at once as it has cores."""

    embedder: EmbedderSpec
    cores: int = 1

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def key(self) -> str:
        text = orjson.dumps(asdict(self), default=str, option=orjson.OPT_SORT_KEYS)
        return f"embedding-{hashlib.sha256(text).hexdigest()[:32]}"

    def build(self, room: HostRoom) -> HostedModel:
        return HostedEmbeddings(replace(self.embedder, threads=self.cores))


class HostedEmbeddings:
    """A copy of an embedding model."""

    progress = "loading"

    def __init__(self, spec: EmbedderSpec) -> None:
        self._spec = spec
        self._embedder: Embedder | None = None

    async def load(self) -> bytes:
        if self._embedder is None:
            self._embedder = await asyncio.to_thread(self._spec.build)
        facts = {"identity": self._embedder.identity, "dimensions": self._embedder.dimensions}
        return orjson.dumps(facts)

    async def answer(self, request: bytes) -> AsyncGenerator[bytes, None]:
        assert self._embedder is not None
        call: dict[str, Any] = orjson.loads(request)
        method = self._embedder.embed_tokens if call["is_tokens"] else self._embedder.embed
        texts = await asyncio.to_thread(method, call["items"], call["dimensions"])
        rows = np.asarray(texts.vectors.flatten(), dtype="<f4")
        yield orjson.dumps([texts.token_count, texts.vectors.type.list_size])
        yield rows.tobytes()

    async def aclose(self) -> None:
        if self._embedder is not None:
            await asyncio.to_thread(self._embedder.close)


def call_of(
    items: Sequence[str] | Sequence[Sequence[int]], *, is_tokens: bool, dimensions: int | None
) -> bytes:
    """Return a call of a hosted model."""
    # What is no Unicode crosses as the replacement character, which is what tokenizers see.
    clean = items if is_tokens else [_clean(str(item)) for item in items]
    return orjson.dumps({"items": clean, "is_tokens": is_tokens, "dimensions": dimensions})


def answer_of(parts: Sequence[bytes]) -> EmbeddedTexts:
    """Return the vectors that the parts of an answer hold."""
    tokens, length = orjson.loads(parts[0])
    rows = np.frombuffer(parts[1], dtype="<f4")
    return EmbeddedTexts(vectors.to_arrow(rows.reshape(-1, length)), tokens)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
