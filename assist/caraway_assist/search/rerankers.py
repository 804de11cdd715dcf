"""The rerankers of the manifest in force: kept loaded, found by name, and called."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from caraway_ai import judging
from caraway_ai.loaded import Loaded
from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_assist.search.tallies import RerankerTallies
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError, InvalidQueryError, ModelAwayError, ModelError
from caraway_core.loading import registry
from caraway_core.manifest import DeclaredReranker, Manifest, SecretResolver
from caraway_core.manifest.values.declared_rerankers import CHAT_MODEL
from caraway_core.protocols.reranking import LoadedReranker, RerankerSpec, TextReranker

logger = logging.getLogger(__name__)
_THREADS = 4
AskModel = Callable[[str, ChatRequest], Awaitable[ChatCompletion]]
"""Calls a model of `models` by name."""


@dataclass(slots=True)
class RerankerState(Loaded[LoadedReranker, ModelError]):
    """The state of a reranker. `spec` is None if one of its secrets is missing."""

    KIND = "reranker"
    declared: DeclaredReranker
    spec: RerankerSpec | None

    @property
    def name(self) -> str:
        """Its name in the manifest."""
        return self.declared.name


class RerankerModels:
    """Implements `Rerankers` over a manifest; `default` needs no model."""

    def __init__(self, default: Callable[[], TextReranker]) -> None:
        self.states: Mapping[str, RerankerState] = {}
        self.ask: AskModel | None = None
        """Set once there are models."""
        self.tallies = RerankerTallies()
        self._default = default
        self._threads = ThreadPoolExecutor(_THREADS, "reranker calls")
        self._tasks = Tasks()

    def apply(self, manifest: Manifest, secrets: SecretResolver) -> None:
        """Take the rerankers of a manifest; those that did not change stay as they are."""
        states: dict[str, RerankerState] = {}
        for declared in manifest.rerankers:
            reranker_state = _state(declared, secrets)
            before = self.states.get(declared.name)
            is_same = (
                before is not None
                and before.spec is not None
                and before.spec == reranker_state.spec
            )
            states[declared.name] = before if before is not None and is_same else reranker_state
        gone = [state for name, state in self.states.items() if states.get(name) is not state]
        new = [state for name, state in states.items() if self.states.get(name) is not state]
        self.states = states
        for state in gone:
            self._tasks.spawn(self._closed(state), "retired reranker", reranker=state.name)
        for state in new:
            self._tasks.spawn(self._load(state), "load a reranker", reranker=state.name)

    async def wait_settled(self) -> None:
        """Wait until each reranker was tried once."""
        for state in self.states.values():
            await state.settled.wait()

    async def aclose(self) -> None:
        await self._tasks.aclose()
        for state in self.states.values():
            await self._closed(state)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def check(self, model: str | None) -> None:
        """Check that there is a reranker of a name.

        Raises:
            InvalidQueryError: there is none.
        """
        if model is None or model in self.states:
            return
        if self.states:
            raise InvalidQueryError(f"rerank: {registry.unknown('reranker', model, self.states)}")
        raise InvalidQueryError(
            f"rerank: no reranker '{model}'; the manifest has no `rerankers`, so leave out "
            "`model` to rank by words in common"
        )

    async def scores(self, model: str | None, query: str, texts: Sequence[str]) -> Sequence[float]:
        """See `Rerankers.scores`."""
        self.check(model)
        if model is None:
            return await self._called(self._default(), query, texts)
        began_s, error = time.perf_counter(), None
        try:
            return await self._scores_by(model, query, texts)
        except CarawayError as exc:
            error = exc
            raise
        finally:
            elapsed_ms = (time.perf_counter() - began_s) * 1000
            self.tallies.ended(model, len(texts), elapsed_ms, error)

    async def _scores_by(self, model: str, query: str, texts: Sequence[str]) -> Sequence[float]:
        state = self.states[model]
        if state.declared.provider == CHAT_MODEL:
            return await self._judged(state, query, texts)
        return await self._called(state.callable(), query, texts)

    async def _called(
        self, reranker: TextReranker, query: str, texts: Sequence[str]
    ) -> Sequence[float]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, reranker.scores, query, texts)

    async def _judged(
        self, state: RerankerState, query: str, texts: Sequence[str]
    ) -> Sequence[float]:
        ask, name = self.ask, state.declared.model
        if ask is None:
            raise ModelAwayError(f"reranker '{state.name}' is still loading; try again")
        try:
            return await judging.scores(query, texts, lambda request: ask(name, request))
        except ModelAwayError:
            raise
        except ModelError as exc:
            raise ModelError(
                f"reranker '{state.name}', model '{name}': {exc.message}", exc.type
            ) from exc

    async def _load(self, state: RerankerState) -> None:
        spec = state.spec
        if state.declared.provider == CHAT_MODEL or spec is None:
            state.status = "ready" if state.error is None else "error"
            state.settled.set()
            return
        loop = asyncio.get_running_loop()
        is_loaded = await state.keep_loading(
            lambda: loop.run_in_executor(self._threads, _built, spec),
            lambda: self.states.get(state.name) is state,
        )
        if is_loaded and self.states.get(state.name) is not state:
            await self._closed(state)

    async def _closed(self, state: RerankerState) -> None:
        loaded, state.loaded = state.loaded, None
        if loaded is not None:
            await asyncio.to_thread(loaded.close)


def _built(spec: RerankerSpec) -> LoadedReranker:
    try:
        return spec.build()
    except ModelError:
        raise
    except CarawayError as exc:  # Its package is not installed.
        raise ModelError(f"reranker '{spec.name}': {exc.message}", "invalid") from exc


def _state(declared: DeclaredReranker, secrets: SecretResolver) -> RerankerState:
    try:
        spec = RerankerSpec(
            declared.name,
            declared.provider,
            secrets.expand(declared.model),
            secrets.expand_all(declared.params),
            declared.base_dir,
            declared.files,
        )
    except CarawayError as exc:
        error = ModelError(f"reranker '{declared.name}': {exc.message}", "auth")
        return RerankerState(declared, None, status="error", error=error)
    return RerankerState(declared, spec)
