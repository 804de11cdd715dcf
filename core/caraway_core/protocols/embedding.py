"""The protocol of embedding models: texts in, vectors out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from caraway_core.loading import registry

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway_core.tables import ResultPlace


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """The vectors of some texts, in their order, and their cost.

    `vectors` is a FixedSizeList of 32-bit floats, without NULL.
    """

    vectors: pa.FixedSizeListArray
    token_count: int


class Embedder(Protocol):
    """An embedding model that is loaded. Its methods block; threads may share it."""

    @property
    def dimensions(self) -> int:
        """The length of each vector. A remote model may need a request for it."""
        ...

    @property
    def is_remote(self) -> bool:
        """True if each call is a round trip, so that few calls with many texts are better."""
        ...

    @property
    def is_quick(self) -> bool:
        """True if making a vector takes less time than reading one that was stored."""
        ...

    @property
    def identity(self) -> str:
        """A text that changes when the same text would get another vector."""
        ...

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        """Embed some texts. A text that is longer than the model reads is cut.

        The vector of a text does not depend on the other texts of the call. `dimensions` asks for
        shorter vectors, which not every model has.

        Raises:
            ModelInputError: the model has no vectors of this length.
            ModelError: the provider refused, failed or did not respond.
        """
        ...

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        """Embed texts that are given as the numbers of the model's own tokens.

        Raises:
            ModelInputError: there is no such token, or the model takes only text.
            ModelError: as `embed`.
        """
        ...

    def close(self) -> None:
        """Let go of threads and connections."""
        ...


@dataclass(frozen=True, slots=True)
class StoredVectorsPlace:
    """Where vectors are stored for loads to come, and how many bytes of them."""

    place: ResultPlace
    most_bytes: int


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
    files: tuple[str, ...] = ()
    threads: int | None = None
    """The number of texts that a local model embeds at once; None means one for each core."""
    stored: StoredVectorsPlace | None = field(default=None, repr=False)
    """Where the vectors of datasets are also looked for; the model is the same without it."""

    def build(self) -> Embedder:
        """Load the model, or make the client of its provider. This blocks.

        Raises:
            ModelError: it cannot be loaded; the message names the model and says what to do.
        """
        model: Embedder = registry.EMBEDDERS.build(self.provider, self)
        return model


class TextVectors(Protocol):
    """The embedding models that statements use, by name. Its method blocks; threads share it."""

    def vectors(self, model: str, texts: Sequence[str], mark: str = "") -> pa.FixedSizeListArray:
        """Embed some texts. With a mark, the model must be the one that has it, see `mark_of`.

        Raises:
            NotFoundError: there is no such model.
            ModelError: it cannot be loaded, is another one, or the call failed.
        """
        ...


def mark_of(identity: str) -> str:
    """Return a short text that stands for the identity of a model."""
    return f"embedding-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class CatalogEmbedding:
    """The embedding models of a catalog: the specs for executors, and the models of this process.

    `vectors` does not cross to another process.
    """

    specs: tuple[EmbedderSpec, ...] = ()
    vectors: TextVectors | None = None


NO_EMBEDDING = CatalogEmbedding()
