"""Embedding models for tests: quick, with a behaviour that the test sets."""

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import EmbeddedTexts, Embedder


class FakeEmbedder:
    """The vector of a text is its length and 1; keeps all calls.

    `fails` is raised while it is set. A text 'bad' is refused with `refusal`. Calls wait while
    `gate` is closed.
    """

    identity = "fake"

    def __init__(self, *, is_remote: bool = False, dimensions: int = 2) -> None:
        self.is_remote = is_remote
        self.is_quick = False
        self.dimensions = dimensions
        self.calls: list[list[str]] = []
        self.fails: ModelError | None = None
        self.refusal: ModelError | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.is_closed = False

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        self.gate.wait(30)
        self.calls.append(list(texts))
        if self.fails is not None:
            raise self.fails
        if self.refusal is not None and "bad" in texts:
            raise self.refusal
        size = dimensions or self.dimensions
        rows = [[float(len(text)), 1.0, *([0.0] * (size - 2))][:size] for text in texts]
        flat = np.array(rows, dtype=np.float32).reshape(-1)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), size)
        return EmbeddedTexts(vectors, sum(map(len, texts)))

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        return self.embed(["t" * len(each) for each in tokens], dimensions)

    def close(self) -> None:
        self.is_closed = True


class FakeModels:
    """Implements `TextVectors` with fake models by name."""

    def __init__(self, **models: FakeEmbedder) -> None:
        self.models = models

    def vectors(self, model: str, texts: Sequence[str], mark: str = "") -> pa.FixedSizeListArray:
        return self.models[model].embed(texts).vectors


def firsts(embedder: Embedder, texts: Sequence[str]) -> list[float]:
    """Return the first number of each vector, and close the model."""
    rows = embedder.embed(texts).vectors.to_pylist()
    embedder.close()
    return [row[0] for row in rows]
