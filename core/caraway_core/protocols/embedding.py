"""The protocol of embedding models: texts in, vectors out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """The vectors of some texts, in their order, and what they cost.

    `vectors` is a FixedSizeList of 32-bit floats, without NULL.
    """

    vectors: pa.FixedSizeListArray
    token_count: int


class Embedder(Protocol):
    """An embedding model that is loaded. Its methods block; threads may share it."""

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        ...

    @property
    def identity(self) -> str:
        """A text that changes when the same text would get another vector."""
        ...

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Embed some texts. A text that is longer than the model reads is cut.

        Raises:
            ModelError: the provider refused, failed or did not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """One entry of `embeddings` in the manifest; it crosses to executors instead of a client.

    `provider` and `model` are the two halves of `from`. Secrets are filled in, so `params` are
    never printed. Relative paths are relative to `base_dir`.
    """

    name: str
    provider: str
    model: str
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    base_dir: Path = field(default_factory=Path)
