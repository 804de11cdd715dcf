"""An embedding model for tests: texts with the same words are near each other."""

import hashlib
import re
import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import EmbeddedTexts

LENGTH = 16


class WordEmbedder:
    """Adds up one vector for each word of a text."""

    dimensions = LENGTH
    identity = "words"
    is_remote = False
    is_quick = False

    def __init__(self) -> None:
        self.texts: list[str] = []
        """Every text that was embedded."""
        self.error: ModelError | None = None
        self.gate = threading.Event()
        """Calls wait until it is set."""
        self.gate.set()

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        assert self.gate.wait(60)
        if self.error is not None:
            raise self.error
        self.texts += texts
        values = np.array([vector(text) for text in texts], np.float32).reshape(-1)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), LENGTH)
        return EmbeddedTexts(vectors, sum(len(text.split()) for text in texts))

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        return self.embed([" ".join(map(str, each)) for each in tokens], dimensions)

    def close(self) -> None:
        pass


def vector(text: str) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Return the vector of a text."""
    total = np.zeros(LENGTH, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        total += np.random.default_rng(seed).normal(size=LENGTH).astype(np.float32)
    return total
