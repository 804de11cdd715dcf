"""A double of a model that executors host; a test scripts the behaviour of its copies."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.hosting import HostedModel, HostedSpec, HostRoom


@dataclass(eq=False)
class Script:
    """The behaviour of all copies of a model, and their requests."""

    parts: tuple[bytes, ...] = (b"one", b"two")
    asked: list[bytes] = field(default_factory=list)
    built: int = 0
    closed: int = 0
    left: int = 0
    """Answers that their caller did not read to the end."""
    load_error: ModelError | None = None
    dies: int = 0
    """The number of the next calls that end the process of the model."""
    may_load: asyncio.Event = field(default_factory=asyncio.Event)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Waited for after the first part."""

    def __post_init__(self) -> None:
        for event in (self.may_load, self.may_begin, self.may_go_on):
            event.set()


@dataclass(frozen=True)
class ScriptedSpec(HostedSpec):
    """A spec whose models follow a script; it stays in this process."""

    script: Script
    called: str = "double"

    @property
    def name(self) -> str:
        return self.called

    @property
    def key(self) -> str:
        return f"double-{self.called}"

    def build(self, room: HostRoom) -> HostedModel:
        self.script.built += 1
        return _ScriptedModel(self.script)


class _ScriptedModel:
    progress = "loading 1 of 2"

    def __init__(self, script: Script) -> None:
        self._script = script

    async def load(self) -> bytes:
        await self._script.may_load.wait()
        if self._script.load_error is not None:
            raise self._script.load_error
        return b"facts"

    async def answer(self, request: bytes) -> AsyncGenerator[bytes, None]:
        script = self._script
        script.asked.append(request)
        await script.may_begin.wait()
        if script.dies:
            script.dies -= 1
            raise ModelAwayError("its process ended in the middle of the answer")
        is_whole = False
        try:
            for index, part in enumerate(script.parts):
                if index == 1:
                    await script.may_go_on.wait()
                yield part
            is_whole = True
        finally:
            script.left += not is_whole

    async def aclose(self) -> None:
        self._script.closed += 1
