"""The current states of embedding models."""

from collections import defaultdict
from dataclasses import dataclass

from caraway_ai.loaded import Loaded
from caraway_assist.hosting.copies import Copies
from caraway_core.errors import ModelError
from caraway_core.manifest import DeclaredEmbedder
from caraway_core.process.durations import Durations, Labels
from caraway_core.protocols.embedding import Embedder, EmbedderSpec


@dataclass(slots=True)
class EmbedderState(Loaded[Embedder, ModelError]):
    """The state of an embedding model. `spec` is None if one of its secrets is missing."""

    KIND = "embedding model"
    declared: DeclaredEmbedder
    spec: EmbedderSpec | None = None
    copies: Copies | None = None
    """Its copies, if executors host it."""

    @property
    def name(self) -> str:
        """Its name in the manifest."""
        return self.declared.name


class EmbeddingTallies:
    """Counters of embedding as plain state, which the metrics page reads at scrape time.

    The label is the name of the model; that of failures has a code, too.
    """

    def __init__(self) -> None:
        self.requests: dict[Labels, int] = defaultdict(int)
        self.failures: dict[Labels, int] = defaultdict(int)
        self.texts: dict[Labels, int] = defaultdict(int)
        self.tokens: dict[Labels, int] = defaultdict(int)
        self.durations = Durations()
