"""Loads models off the event loop, checks them from time to time, and tries again."""

import asyncio
import contextlib
import logging
import time
from pathlib import Path
from typing import Protocol

from caraway_ai.loaded import AGAIN
from caraway_ai.local.sent_files import FileSender, SentFile
from caraway_ai.protocols import ChatModel, HasResponses
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_assist.hosting.service import Hosting
from caraway_assist.models.hosted import HostedChatModel
from caraway_assist.models.limits import LimitSettings, ModelLimits
from caraway_assist.models.metering import CallMeter, MeteredModel, MeteredResponses
from caraway_assist.models.states import LoadedModel, ModelState
from caraway_assist.models.usage import UsageLimits
from caraway_core.concurrency.backoff import Backoff
from caraway_core.errors import CarawayError, ModelError
from caraway_core.loading import registry
from caraway_core.manifest import Model, SecretResolver
from caraway_core.manifest.models import ModelResources

logger = logging.getLogger(__name__)
_LAST_CALLS_S = 60.0


def spec_of(model: Model, secrets: SecretResolver, cache_dir: Path) -> ModelSpec:
    """Return the spec of a model, with its secrets filled in.

    Raises:
        ModelError: a secret is missing.
    """
    try:
        return ModelSpec(
            model.name,
            model.provider,
            secrets.expand(model.path),
            secrets.expand_all(model.params),
            model.files,
            model.resources or ModelResources(),
            model.base_dir,
            cache_dir,
        )
    except CarawayError as exc:
        raise ModelError(f"model '{model.name}': {exc.message}", "auth") from exc


class ModelOwner(Protocol):
    """The models that one of them belongs to."""

    @property
    def is_closing(self) -> bool:
        """True if the end of a model breaks off calls under way."""
        ...

    def meter(self, state: ModelState, limits: ModelLimits) -> CallMeter:
        """Return what counts and limits the calls of a model."""
        ...

    def check_tools(self, state: ModelState) -> None:
        """Check that the tools exist which a model names.

        Raises:
            ModelError: one does not.
        """
        ...


class ModelKeeper:
    """Keeps one model of the manifest loaded."""

    def __init__(
        self,
        state: ModelState,
        owner: ModelOwner,
        secrets: SecretResolver,
        cache_dir: Path,
        hosting: Hosting | None = None,
        sender: FileSender | None = None,
    ) -> None:
        """Without `hosting` there is no cluster, and local models run here.

        The sender puts files of models where executors reach them.
        """
        self._hosting = hosting
        self._sender = sender
        self._state = state
        self._secrets = secrets
        self._cache_dir = cache_dir
        self._owner = owner
        self._chat: ChatModel | None = None

    async def run(self) -> None:
        """Load the model, and check it until cancelled."""
        again = Backoff(AGAIN)
        try:
            while True:
                wait_s = await self._look(again)
                try:
                    async with asyncio.timeout(wait_s):
                        await self._state.look.wait()
                except TimeoutError:
                    pass
                self._state.look.clear()
        finally:
            await self._end()

    async def _end(self) -> None:
        if self._chat is None:
            return
        loaded = self._state.loaded
        if loaded is not None and not self._owner.is_closing:
            # A reload replaced the model; calls under way finish.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS_S):
                    await loaded.limits.idle()
        self._state.loaded = self._state.copies = self._state.running = None
        await self._chat.aclose()

    async def _look(self, again: Backoff) -> float:
        state, started = self._state, time.perf_counter()
        try:
            loaded = state.loaded or await self._load()
            await loaded.chat.check()
            self._owner.check_tools(state)
        except ModelError as exc:
            state.has_failed(exc)
            return again.failed()
        except Exception:
            logger.exception("model failed", extra={"model": state.name})
            message = f"model '{state.name}': internal error; the log has the cause"
            state.has_failed(ModelError(message))
            return again.failed()
        else:
            if state.status != "ready":
                state.load_duration_ms = (time.perf_counter() - started) * 1000
            again.succeeded()
            state.is_ready()
            return loaded.check_period_s
        finally:
            state.settled.set()

    async def _load(self) -> LoadedModel:
        spec = spec_of(self._state.model, self._secrets, self._cache_dir)
        params = ModelParams(spec)
        limits = ModelLimits(spec.name, _limits(params))
        chat = self._chat = self._state.running = await self._built(spec)
        meter = self._owner.meter(self._state, limits)
        native = chat.responses if isinstance(chat, HasResponses) else None
        loaded = LoadedModel(
            MeteredModel(chat, meter),
            limits,
            params.defaults(),
            params.text("system_prompt"),
            params.duration_s("health_check_interval", 300.0) or 10**9,
            MeteredResponses(native, meter) if native is not None else None,
        )
        self._state.loaded = loaded
        return loaded

    async def _built(self, spec: ModelSpec) -> ChatModel:
        model = self._state.model
        is_hosted = (
            model.resources is not None
            and registry.MODEL_PROVIDERS.declared(model.provider).is_local
        )
        if self._hosting is None or not is_hosted:
            # Packages of providers are slow to import.
            return await asyncio.to_thread(spec.build)
        hosted = HostedChatModel(spec, self._hosting, await self._sent(spec))
        hosted.copies.on_change = self._state.look.set
        self._state.copies = hosted.copies
        return hosted

    async def _sent(self, spec: ModelSpec) -> tuple[SentFile, ...]:
        """Send the files of the model that are here; executors may have the others."""
        if self._sender is None:
            return ()
        files: list[SentFile] = []
        for written in spec.own_files:
            try:
                files.append(await self._sender.send(spec.base_dir / written, written))
            except FileNotFoundError:
                continue
            except OSError as exc:
                reason = exc.strerror or str(exc)
                message = f"model '{spec.name}': '{written}' cannot be read: {reason}"
                raise ModelError(message, "not_found") from exc
            except CarawayError as exc:
                kind = exc.type if isinstance(exc, ModelError) else "unavailable"
                raise ModelError(f"model '{spec.name}': {exc.message}", kind) from exc
        return tuple(files)


def _limits(params: ModelParams) -> LimitSettings:
    def limit(name: str, default: int = 0) -> int | None:
        return params.count(name, default) or None

    def usage(ending: str) -> UsageLimits:
        return UsageLimits(
            limit(f"requests_per_minute{ending}"),
            limit(f"tokens_per_minute{ending}"),
            limit(f"tokens_per_day{ending}"),
        )

    return LimitSettings(
        concurrent=limit("max_concurrent_requests", 256),
        queued=params.count("max_queued_requests", 256),
        of_model=usage(""),
        of_key=usage("_per_key"),
    )
