"""The embedding models of one process: each is loaded once, when it is first used."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ModelAwayError, ModelError, NotFoundError
from caraway_core.loading import registry
from caraway_core.protocols.embedding import (
    Embedder,
    EmbedderSpec,
    StoredVectorsPlace,
    mark_of,
)
from caraway_core.protocols.results import ResultStore
from caraway_plugins.embeddings.recent import RecentModel, RecentVectors
from caraway_plugins.embeddings.stored import StoredVectors

logger = logging.getLogger(__name__)
_DELAYS = Delays(2.0, 60.0, jitter=0.2)


@dataclass(slots=True)
class _Slot:
    """A model that is loaded, or why it could not be."""

    spec: EmbedderSpec
    lock: threading.Lock = field(default_factory=threading.Lock)
    embedder: Embedder | None = None
    error: ModelError | None = None
    cooldown: Cooldown = field(default_factory=lambda: Cooldown(_DELAYS))


class LoadedEmbedders:
    """Loads models and keeps them. Threads share it; its methods block.

    Equal specs are one model, whichever catalog they are from.
    """

    def __init__(
        self,
        clock: SecondsClock = time.monotonic,
        recent: RecentVectors | None = None,
    ) -> None:
        self._clock = clock
        self._slots: dict[EmbedderKey, _Slot] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        self.recent = RecentVectors() if recent is None else recent
        self.texts: Counter[str] = Counter()
        """The texts that statements had embedded, by the name of the model; known ones, too."""
        self._stored: list[tuple[StoredVectorsPlace, StoredVectors | None]] = []
        self._opening = threading.Lock()

    def embedders_of(self, specs: Sequence[EmbedderSpec]) -> "NamedEmbedders":
        """Return the models of a catalog by name; nothing is loaded yet."""
        return NamedEmbedders(self, {spec.name: spec for spec in specs})

    def load(self, spec: EmbedderSpec) -> Embedder:
        """Return a model, and load it if it is not.

        A failure is remembered for a while, so that statements do not load a broken model again
        and again.

        Raises:
            ModelError: it cannot be loaded.
        """
        slot = self._slot(spec)
        with slot.lock:
            if slot.embedder is not None:
                return slot.embedder
            if slot.error is not None and slot.cooldown.left_s:
                raise slot.error
            try:
                slot.embedder = self._built(spec)
            except ModelError as exc:
                slot.error = exc
                slot.cooldown.failed()
                raise
            slot.error = None
            slot.cooldown.succeeded()
            return slot.embedder

    def forget(self, specs: Sequence[EmbedderSpec]) -> None:
        """Close models that no catalog names any more."""
        with self._lock:
            slots = [self._slots.pop(_key(spec), None) for spec in specs]
        for slot in slots:
            if slot is not None:
                _close(slot)

    def keep_only(self, specs: Sequence[EmbedderSpec]) -> None:
        """Close the models of all other specs."""
        keys = {_key(spec) for spec in specs}
        with self._lock:
            gone = [slot.spec for key, slot in self._slots.items() if key not in keys]
        self.forget(gone)

    def close(self) -> None:
        """Close all models."""
        with self._lock:
            self._is_closed = True
            slots, self._slots = list(self._slots.values()), {}
        for _, stored in self._stored:
            if stored is not None:
                stored.close()
        for slot in slots:
            _close(slot)

    def stored(self, at: StoredVectorsPlace) -> StoredVectors | None:
        """Return the cache of vectors in a store; None where it cannot be used."""
        with self._opening:
            for place, vectors in self._stored:
                if place == at:
                    return vectors
            made: StoredVectors | None = None
            try:
                store: ResultStore = registry.RESULT_STORES.load(at.place.kind).at(at.place)
                made = StoredVectors(store, at.most_bytes)
            except CarawayError as exc:
                logger.warning("vectors are not stored", extra={"cause": exc.message})
            self._stored.append((at, made))
            return made

    @property
    def stored_counts(self) -> tuple[int, int]:
        """The texts that were looked for in stores, and those that were found."""
        used = [stored for _, stored in self._stored if stored is not None]
        return sum(each.requests for each in used), sum(each.hits for each in used)

    def _slot(self, spec: EmbedderSpec) -> _Slot:
        with self._lock:
            if self._is_closed:
                raise ModelAwayError(f"embedding model '{spec.name}': the process is ending")
            return self._slots.setdefault(_key(spec), _Slot(spec))

    def _built(self, spec: EmbedderSpec) -> Embedder:
        try:
            return spec.build()
        except ModelError:
            raise
        except CarawayError as exc:
            raise ModelError(f"embedding model '{spec.name}': {exc.message}", "invalid") from exc
        except Exception as exc:
            logger.exception("embedding model failed", extra={"model": spec.name})
            raise ModelError(
                f"embedding model '{spec.name}' cannot be loaded; the log has the cause"
            ) from exc


class NamedEmbedders:
    """Implements `TextVectors` for the models of one catalog."""

    def __init__(self, loaded: LoadedEmbedders, specs: Mapping[str, EmbedderSpec]) -> None:
        self._loaded = loaded
        self._specs = specs

    def find(self, model: str) -> Embedder:
        """Return a model, and load it if it is not.

        Raises:
            NotFoundError: there is no such model.
            ModelError: it cannot be loaded.
        """
        if model not in self._specs:
            raise NotFoundError(registry.unknown("embedding model", model, self._specs))
        return self._loaded.load(self._specs[model])

    def vectors(self, model: str, texts: Sequence[str], mark: str = "") -> pa.FixedSizeListArray:
        embedder = self.find(model)
        if mark and mark_of(embedder.identity) != mark:
            raise ModelError(
                f"embedding model '{model}' is another one on this machine than on the scheduler; "
                "use the same files and versions on all machines"
            )
        model_or_store: RecentModel = embedder
        at = self._specs[model].stored
        # Only what is made for datasets has a mark; texts of searches are not worth storing.
        if mark and at is not None and not embedder.is_quick:
            stored = self._loaded.stored(at)
            model_or_store = stored.over(embedder) if stored is not None else embedder
        found = self._loaded.recent.embedded(model_or_store, texts)
        self._loaded.texts[model] += len(texts)
        return found


EmbedderKey = tuple[object, ...]


def _key(spec: EmbedderSpec) -> EmbedderKey:
    params = tuple(sorted(spec.params.items()))
    return (spec.name, spec.provider, spec.model, params, spec.base_dir, spec.files)


def _close(slot: _Slot) -> None:
    with slot.lock:
        embedder, slot.embedder = slot.embedder, None
    if embedder is not None:
        embedder.close()
