"""Models that executors host: what crosses to them, and what comes back.

A request and the parts of its answer are bytes, which only the spec's model and its caller read.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from caraway_core.errors import ModelError

CopyState = Literal["loading", "ready", "failed", "refused"]
"""A refused copy is not there: the executor has no room for it, or is about to end."""


@dataclass(frozen=True, slots=True)
class HostRoom:
    """The resources of an executor for a hosted model: a folder for files, and GPUs by number."""

    folder: Path
    gpus: tuple[int, ...] = ()


class HostedModel(Protocol):
    """A copy of a model on an executor. One event loop uses it; calls may overlap."""

    @property
    def progress(self) -> str:
        """The current step of loading, in a few words."""
        ...

    async def load(self) -> bytes:
        """Load the model, or check that it is loaded, and return its facts.

        Raises:
            ModelError: it cannot be loaded.
        """
        ...

    def answer(self, request: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the parts of an answer; closing the generator ends the call.

        Raises:
            ModelError: the call failed, also between parts.
        """
        ...

    async def aclose(self) -> None:
        """Release processes, threads and memory; calls under way fail."""
        ...


class HostedSpec:
    """The recipe from which an executor builds a model. A frozen dataclass extends this."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the model in the manifest."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """A text, the same for equal specs of all schedulers, and reveals no part of them."""
        raise NotImplementedError

    def build(self, room: HostRoom) -> HostedModel:
        """Build the model; it is not loaded yet. This may block.

        Raises:
            ModelError: a package is missing, or a param is wrong.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """Asks an executor to host a copy, and to keep it while the holder repeats the order."""

    holder: str
    """The scheduler that asks. Schedulers that order equal specs share a copy."""
    spec: HostedSpec = field(repr=False)
    cores: int = 1
    memory_bytes: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class CopyStatus:
    """The state of a copy, as its executor answers an order."""

    state: CopyState
    progress: str = ""
    facts: bytes = field(default=b"", repr=False)
    error: ModelError | None = None
    """Why it failed or is refused; while it is loaded again, why it failed before."""
    active: int = 0
    """The calls under way, of all schedulers."""


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of an answer that are there; the first page waits for the first part."""

    parts: tuple[bytes, ...] = field(repr=False)
    is_last: bool
