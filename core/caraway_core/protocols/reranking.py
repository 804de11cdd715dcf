"""The protocol of rerankers: a query and texts in, scores out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from caraway_core.loading import registry


class TextReranker(Protocol):
    """Judges how well texts answer a query. Its methods block; threads may share it."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text; a greater one is better.

        Raises:
            ModelAwayError: the same call may succeed later.
            ModelError: the model failed.
        """
        ...


class LoadedReranker(TextReranker, Protocol):
    """A reranker with connections or threads of its own."""

    def close(self) -> None:
        """Let go of them."""
        ...


@dataclass(frozen=True, slots=True)
class RerankerSpec:
    """One entry of `rerankers` in the manifest.

    `provider` and `model` are the two halves of `from`. Secrets are filled in, so `params` are
    never printed. Relative paths are relative to `base_dir`.
    """

    name: str
    provider: str
    model: str
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    base_dir: Path = field(default_factory=Path)
    files: tuple[str, ...] = ()

    def build(self) -> LoadedReranker:
        """Load the model, or make the client of its provider. This blocks.

        Raises:
            ModelError: it cannot be loaded; the message names the reranker and says what to do.
        """
        model: LoadedReranker = registry.RERANKERS.build(self.provider, self)
        return model
