"""The current states of embedding models."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from caraway_assist.hosting.copies import Copies
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest import DeclaredEmbedder
from caraway_core.process.durations import Durations, Labels
from caraway_core.protocols.embedding import Embedder, EmbedderSpec

EmbedderStatus = Literal["initializing", "ready", "error"]


@dataclass(slots=True)
class EmbedderState:
    """The state of an embedding model. `spec` is None if one of its secrets is missing."""

    declared: DeclaredEmbedder
    spec: EmbedderSpec | None = None
    status: EmbedderStatus = "initializing"
    error: ModelError | None = None
    embedder: Embedder | None = None
    copies: Copies | None = None
    """Its copies, if executors host it."""
    was_ready: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first attempt to load it."""

    @property
    def name(self) -> str:
        return self.declared.name

    def callable(self) -> Embedder:
        """Return the model, if it is loaded.

        Raises:
            ModelAwayError: it is loading.
            ModelError: it could not be loaded.
        """
        if self.embedder is not None:
            return self.embedder
        if self.error is not None:
            raise self.error
        raise ModelAwayError(f"embedding model '{self.name}' is still loading; try again")

    def is_ready(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.status, self.error, self.was_ready = "ready", None, True

    def has_failed(self, error: ModelError) -> None:
        self.status, self.error = "error", error


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
