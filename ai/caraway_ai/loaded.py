"""Entries of the manifest that are loaded until they work: models, MCP servers and similar."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar, cast

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import ModelAwayError, ModelError, ToolError

logger = logging.getLogger(__name__)
AGAIN = Delays(2.0, 60.0, jitter=0.2)
"""The waits between attempts to load."""
LoadStatus = Literal["initializing", "ready", "error"]
T = TypeVar("T")
E = TypeVar("E", ModelError, ToolError)
"""The error with which it fails."""


@dataclass(slots=True, kw_only=True)
class Loaded(ABC, Generic[T, E]):
    """Something that is loaded by name, its state, and its last error.

    `was_ready` is True if it was ready once. What fails later does not take this process out of
    service, which serves much else.
    """

    KIND: ClassVar[str] = "model"
    status: LoadStatus = "initializing"
    error: E | None = None
    loaded: T | None = None
    was_ready: bool = False
    load_errors: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first attempt to load it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the manifest."""

    def callable(self) -> T:
        """Return the loaded object.

        Raises:
            ModelAwayError: it is loading.
            ModelError, ToolError: it could not be loaded.
        """
        if self.loaded is not None:
            return self.loaded
        if self.error is not None:
            raise self.error
        raise ModelAwayError(f"{self.KIND} '{self.name}' is still loading; try again")

    def is_ready(self) -> None:
        """Note that it works."""
        if self.status != "ready":
            logger.info("%s ready", self.KIND, extra={self.label: self.name})
        self.status, self.error, self.was_ready = "ready", None, True

    def has_failed(self, error: E) -> None:
        """Note a failure; the log has each reason once."""
        if self.error is None or self.error.message != error.message:
            extra = {self.label: self.name, "reason": error.message}
            if isinstance(error, ModelError):
                extra["code"] = error.code
            logger.warning("%s failed", self.KIND, extra=extra)
        self.status, self.error = "error", error
        self.load_errors += 1

    @property
    def label(self) -> str:
        """The field of log lines that holds its name."""
        return self.KIND.rpartition(" ")[2]

    async def keep_loading(
        self, load: Callable[[], Awaitable[T]], is_wanted: Callable[[], bool], *, again: bool = True
    ) -> bool:
        """Load it until that works; return whether it is loaded.

        Attempts end if it is not wanted any more, or after the first one without `again`.
        """
        waits = Backoff(AGAIN)
        try:
            while is_wanted():
                try:
                    self.loaded = await load()
                except (ModelError, ToolError) as exc:
                    self.has_failed(cast(E, exc))  # A load raises no other.
                else:
                    self.is_ready()
                    return True
                finally:
                    self.settled.set()
                if not again:
                    break
                await asyncio.sleep(waits.failed())
            return False
        finally:
            self.settled.set()
