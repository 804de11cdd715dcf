"""The current states of models."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from caraway_ai.protocols import ChatModel, ResponsesModel
from caraway_assist.hosting.copies import Copies
from caraway_assist.models.limits import ModelLimits
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest import Model
from caraway_serving.access import ANONYMOUS, Principal
from caraway_serving.spans import Span

ModelStatus = Literal["initializing", "ready", "error"]


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Who calls a model, and within which trace."""

    span: Span
    principal: Principal = ANONYMOUS
    shows_progress: bool = False
    """True if the text of a stream reports calls of tools."""
    uses_tools: bool = True


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that can be called, and what the manifest adds to its requests."""

    chat: ChatModel
    limits: ModelLimits
    defaults: dict[str, Any] = field(default_factory=dict)
    system_prompt: str | None = None
    check_period_s: float = 300.0
    responses: ResponsesModel | None = None
    """The same model by the responses API of its provider, if it has one."""


@dataclass(slots=True)
class ModelState:
    """The state of a model of the manifest."""

    model: Model
    status: ModelStatus = "initializing"
    error: ModelError | None = None
    loaded: LoadedModel | None = None
    was_ready: bool = False
    """True if it was ready once. A provider that fails later does not take this process out of
    service, which serves much else."""
    load_duration_ms: float = 0.0
    load_errors: int = 0
    created_s: int = field(default_factory=lambda: int(time.time()))
    """When the manifest in force named it first, in Unix seconds."""
    running: ChatModel | None = None
    """The model itself, without its limits."""
    copies: Copies | None = None
    """Its copies, if executors host it."""
    look: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have the model checked now."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first attempt to load it."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def progress(self) -> str:
        """What loading does now; empty if nothing is loaded."""
        if self.copies is not None:
            views = self.copies.views()
            return "; ".join(
                f"{view.progress} on executor '{view.executor_id}'"
                for view in views
                if view.state == "loading"
            )
        return str(getattr(self.running, "progress", ""))

    def callable(self) -> LoadedModel:
        """Return the model, if it can be called.

        Raises:
            ModelAwayError: it is loading.
            ModelError: it could not be loaded.
        """
        if self.loaded is not None:
            return self.loaded
        if self.error is not None:
            raise self.error
        raise ModelAwayError(f"model '{self.name}' is still loading; try again")

    def is_ready(self) -> None:
        self.status, self.error, self.was_ready = "ready", None, True

    def has_failed(self, error: ModelError) -> None:
        self.status, self.error = "error", error
        self.load_errors += 1
