"""The current states of models."""

import asyncio
import time
from dataclasses import dataclass, field

from caraway_ai.loaded import Loaded
from caraway_ai.protocols import ChatModel, ResponsesModel
from caraway_assist.hosting.copies import Copies
from caraway_assist.models.limits import ModelLimits
from caraway_core.errors import ModelError
from caraway_core.manifest import Model
from caraway_serving.access import ANONYMOUS, Principal
from caraway_serving.spans import Span


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """The caller of a model, and the trace of the call."""

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
    defaults: dict[str, object] = field(default_factory=dict)
    system_prompt: str | None = None
    check_period_s: float = 300.0
    responses: ResponsesModel | None = None
    """The same model by the responses API of its provider, if it has one."""


@dataclass(slots=True)
class ModelState(Loaded[LoadedModel, ModelError]):
    """The state of a model of the manifest."""

    model: Model
    load_duration_ms: float = 0.0
    created_s: int = field(default_factory=lambda: int(time.time()))
    """When the manifest in force named it first, in Unix seconds."""
    running: ChatModel | None = None
    """The model itself, without its limits."""
    copies: Copies | None = None
    """Its copies, if executors host it."""
    look: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have the model checked now."""

    @property
    def name(self) -> str:
        """Its name in the manifest."""
        return self.model.name

    @property
    def progress(self) -> str:
        """The progress of loading; empty if nothing is loaded."""
        if self.copies is not None:
            views = self.copies.views()
            return "; ".join(
                f"{view.progress} on executor '{view.executor_id}'"
                for view in views
                if view.state == "loading"
            )
        return str(getattr(self.running, "progress", ""))
