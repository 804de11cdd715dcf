"""The embedding models of the manifest in force: kept loaded, found by name, and called."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from caraway_assist.embeddings.batching import BatchedModel, Items
from caraway_assist.embeddings.hosted import HostedEmbedder, hosted
from caraway_assist.embeddings.kept_answers import KeptAnswers, key_of
from caraway_assist.embeddings.states import EmbedderState, EmbeddingTallies
from caraway_assist.hosting.service import Hosting
from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError, ModelError, NotFoundError
from caraway_core.loading import registry
from caraway_core.manifest import DeclaredEmbedder, Manifest, SecretResolver
from caraway_core.manifest.values.caching import EmbeddingsCacheSettings
from caraway_core.protocols.embedding import (
    CatalogEmbedding,
    EmbeddedTexts,
    Embedder,
    EmbedderSpec,
    StoredVectorsPlace,
    mark_of,
)
from caraway_core.tables import ResultPlace
from caraway_plugins.embeddings.loaded import LoadedEmbedders
from caraway_plugins.embeddings.recent import RecentVectors
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_serving.spans import Span

logger = logging.getLogger(__name__)
TASK = "text_embed"
_THREADS = 8
MOST_WAITING = 20_000
"""Texts that may wait for one model."""


class Embeddings:
    """Loads the models of a manifest off the event loop, and shares them among requests.

    Models that the manifest lists are loaded at once; the others when they are first used.
    """

    def __init__(
        self,
        history: TaskHistory,
        most_waiting: int = MOST_WAITING,
        hosting: Hosting | None = None,
        caching: EmbeddingsCacheSettings | None = None,
        place: ResultPlace | None = None,
    ) -> None:
        """Without `hosting` there is no cluster, and all models are called from here.

        `place` is where vectors of datasets are stored, if all processes reach it.
        """
        settings = caching or EmbeddingsCacheSettings()
        most_bytes = settings.max_stored_size_bytes if settings.enabled else 0
        self._stored = (
            StoredVectorsPlace(place, most_bytes) if place is not None and most_bytes else None
        )
        kept_bytes = settings.max_size_bytes if settings.enabled else 0
        self.recent = RecentVectors(kept_bytes, settings.item_ttl_s)
        keeps = caching is not None and settings.enabled
        limits = CacheSettings(settings.max_size_bytes, settings.item_ttl_s)
        self.answers = KeptAnswers(limits) if keeps else None
        """Answers to requests, if the manifest wants them kept."""
        self._hosting = hosting
        self.states: Mapping[str, EmbedderState] = {}
        self.tallies = EmbeddingTallies()
        self.catalog = CatalogEmbedding()
        """What statements of the catalog use."""
        self.on_ready: Callable[[str, str], None] = lambda _name, _identity: None
        """Called with the name and the identity of a model of the manifest that is loaded."""
        self._history = history
        self._most_waiting = most_waiting
        self._loaded = LoadedEmbedders(recent=self.recent)
        self._threads = ThreadPoolExecutor(_THREADS, "embedding calls")
        self._batched: dict[str, BatchedModel] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks()

    def apply(self, manifest: Manifest, secrets: SecretResolver) -> bool:
        """Take the models of a manifest; those that did not change stay as they are.

        Returns whether any changed.
        """
        states: dict[str, EmbedderState] = {}
        for declared in manifest.embedders:
            embedder_state = _state(declared, secrets)
            before = self.states.get(declared.name)
            is_same = (
                before is not None
                and before.spec is not None
                and before.spec == embedder_state.spec
                and before.declared.resources == declared.resources
            )
            states[declared.name] = before if before is not None and is_same else embedder_state
        gone = [state for name, state in self.states.items() if states.get(name) is not state]
        has_changed = bool(gone) or states.keys() != self.states.keys()
        self.states = states
        for state in gone:
            self._tasks.spawn(self._retire(state), "retired embedding model", model=state.name)
        if has_changed:
            specs = tuple(
                replace(state.spec, stored=self._stored)
                for state in states.values()
                if state.spec is not None
            )
            self.catalog = CatalogEmbedding(specs, self._loaded.embedders_of(specs))
            for state in states.values():
                if state.declared.is_declared:
                    self._load(state)
        return has_changed

    async def wait_settled(self) -> None:
        """Wait until each model that the manifest lists was tried once."""
        for state in self.states.values():
            if state.declared.is_declared:
                await state.settled.wait()

    async def aclose(self) -> None:
        await self._tasks.aclose()
        for batched in self._batched.values():
            await batched.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._loaded.close)

    def find(self, name: str) -> EmbedderState:
        """Return the state of a model.

        Raises:
            NotFoundError: there is no such model.
        """
        if name not in self.states:
            raise NotFoundError(registry.unknown("embedding model", name, self.states))
        return self.states[name]

    async def embedder(self, name: str) -> Embedder:
        """Return a model; one that the manifest does not list is loaded now.

        Raises:
            NotFoundError: there is no such model.
            ModelAwayError: it is loading.
            ModelError: it could not be loaded.
        """
        state = self.find(name)
        if state.loaded is None and not state.declared.is_declared:
            self._load(state)
            await state.settled.wait()
        return state.callable()

    async def settled_embedder(self, name: str) -> Embedder:
        """Return a model, after waiting for the first attempt to load it.

        Refreshes use this: one that is not retried would otherwise fail for good at the start.

        Raises: as `embedder`.
        """
        state = self.find(name)
        if state.declared.is_declared:
            await state.settled.wait()
        return await self.embedder(name)

    async def vectors(self, name: str, texts: Sequence[str]) -> pa.FixedSizeListArray:
        """Embed texts of datasets.

        Raises: as `embedder`.
        """
        embedder = await self.embedder(name)
        models = self.catalog.vectors
        assert models is not None
        loop = asyncio.get_running_loop()
        if isinstance(embedder, HostedEmbedder):
            return await loop.run_in_executor(self._threads, self._known, embedder, texts)
        mark = mark_of(embedder.identity)
        return await loop.run_in_executor(self._threads, models.vectors, name, texts, mark)

    def _known(self, embedder: HostedEmbedder, texts: Sequence[str]) -> pa.FixedSizeListArray:
        stored = self._loaded.stored(self._stored) if self._stored is not None else None
        return self.recent.embedded(embedder if stored is None else stored.over(embedder), texts)

    async def embed(
        self,
        name: str,
        items: Items,
        span: Span,
        *,
        is_tokens: bool = False,
        dimensions: int | None = None,
    ) -> EmbeddedTexts:
        """Embed texts for a request, and record that as a task.

        Raises:
            NotFoundError: there is no such model.
            OverloadedError: too many texts wait for it.
            ModelError: it is not loaded, or the call failed.
        """
        started_ns, started_s = time.time_ns(), time.perf_counter()
        found: EmbeddedTexts | None = None
        error: CarawayError | None = None
        self.find(name)
        try:
            embedder = await self.embedder(name)
            found = await self._answered(name, embedder, items, is_tokens, dimensions)
            return found
        except CarawayError as exc:
            error = exc
            raise
        finally:
            self._count(name, found, error, (time.perf_counter() - started_s) * 1000)
            labels = {"model": name, "texts": str(len(items))}
            if found is not None:
                labels["prompt_tokens"] = str(found.token_count)
            self._history.add(
                TaskRecord(
                    span,
                    TASK,
                    _shown(items) if self._history.settings.captures_output else "",
                    started_ns,
                    time.time_ns(),
                    error.message if error else None,
                    labels=labels,
                    principal=span.principal,
                )
            )

    async def _answered(
        self, name: str, embedder: Embedder, items: Items, is_tokens: bool, dimensions: int | None
    ) -> EmbeddedTexts:
        if self.answers is None:
            return await self._batches(name, embedder).embed(items, is_tokens, dimensions)
        key = key_of(embedder.identity, items, is_tokens=is_tokens, dimensions=dimensions)
        if (texts := self.answers.get(key)) is None:
            texts = await self._batches(name, embedder).embed(items, is_tokens, dimensions)
            self.answers.put(key, texts)
        return texts

    @property
    def waiting(self) -> Mapping[str, int]:
        """The texts that wait for each model, or that it is called with."""
        return {name: batched.waiting_texts for name, batched in self._batched.items()}

    @property
    def statement_texts(self) -> Mapping[str, int]:
        """The texts that statements and loads of this process had embedded, for each model."""
        return self._loaded.texts

    @property
    def stored_counts(self) -> tuple[int, int]:
        """The texts that this process looked for among stored vectors, and those it found."""
        return self._loaded.stored_counts

    def _load(self, state: EmbedderState) -> None:
        if (task := self._loading.get(state.name)) is not None and not task.done():
            return
        if (spec := state.spec) is None:
            state.settled.set()  # Only another manifest can help.
            return
        state.settled.clear()
        self._loading[state.name] = self._tasks.spawn(
            self._keep_loading(state, spec), "load an embedding model", model=state.name
        )

    async def _keep_loading(self, state: EmbedderState, spec: EmbedderSpec) -> None:
        is_loaded = await state.keep_loading(
            lambda: self._made(state, spec),
            lambda: self.states.get(state.name) is state,
            again=state.declared.is_declared,
        )
        if is_loaded:
            self.on_ready(state.name, state.callable().identity)

    async def _made(self, state: EmbedderState, spec: EmbedderSpec) -> Embedder:
        loop, resources = asyncio.get_running_loop(), state.declared.resources
        is_hosted = resources is not None and registry.EMBEDDERS.declared(spec.provider).is_local
        if self._hosting is None or resources is None or not is_hosted:
            return await loop.run_in_executor(self._threads, self._checked, spec)
        if state.copies is None:
            state.copies = hosted(self._hosting, spec, resources)
        await state.copies.wait_usable()
        return HostedEmbedder(state.copies, loop)

    def _checked(self, spec: EmbedderSpec) -> Embedder:
        embedder = self._loaded.load(spec)
        # Requests one vector from a remote model, which shows that it can be called.
        _ = embedder.dimensions
        return embedder

    def _batches(self, name: str, embedder: Embedder) -> BatchedModel:
        if name not in self._batched:
            self._batched[name] = BatchedModel(name, embedder, self._threads, self._most_waiting)
        return self._batched[name]

    async def _retire(self, state: EmbedderState) -> None:
        batched = self._batched.pop(state.name, None)
        if batched is not None:
            await batched.aclose()
        if state.copies is not None and self._hosting is not None:
            await self._hosting.release(state.copies)
        if state.spec is not None:
            await asyncio.to_thread(self._loaded.forget, [state.spec])

    def _count(
        self, name: str, texts: EmbeddedTexts | None, error: CarawayError | None, took_ms: float
    ) -> None:
        tallies, label = self.tallies, (name,)
        tallies.requests[label] += 1
        tallies.durations.add(label, took_ms)
        if texts is not None:
            tallies.texts[label] += len(texts.vectors)
            tallies.tokens[label] += texts.token_count
        elif error is not None:
            code = error.code if isinstance(error, ModelError) else type(error).__name__
            tallies.failures[name, code] += 1
        else:
            tallies.failures[name, "cancelled"] += 1


def _state(declared: DeclaredEmbedder, secrets: SecretResolver) -> EmbedderState:
    try:
        spec = EmbedderSpec(
            declared.name,
            declared.provider,
            secrets.expand(declared.model),
            secrets.expand_all(declared.params),
            declared.base_dir,
            declared.files,
        )
    except CarawayError as exc:
        error = ModelError(f"embedding model '{declared.name}': {exc.message}", "auth")
        state = EmbedderState(declared, status="error", error=error)
        state.settled.set()
        return state
    return EmbedderState(declared, spec)


def _shown(items: Items) -> str:
    return "\n".join(item if isinstance(item, str) else str(list(item)) for item in items)
