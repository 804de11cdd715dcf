"""Models of a manifest whose provider a test scripts."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_ai.specs import ModelSpec
from caraway_core import manifest as manifests
from caraway_core.errors import ModelError
from caraway_core.ids import NodeId
from caraway_core.manifest import Manifest, SecretResolver
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from tests.kit.scripted_chat import ScriptedChat
from tests.kit.scripted_provider import completion


@dataclass(slots=True)
class FailingChat(ScriptedChat):
    """A model that can fail its check; calls wait while its gate is closed."""

    error: Exception | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    is_called: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: bool = False

    async def check(self) -> None:
        if self.error is not None:
            raise self.error

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        self.is_called.set()
        await self.gate.wait()
        return await ScriptedChat.chat(self, request)

    async def aclose(self) -> None:
        self.is_closed = True


class ScriptedBuilds:
    """Builds a `FailingChat` for each spec of the provider `openai`, unless it has an error."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.specs: list[ModelSpec] = []
        self.chats: list[FailingChat] = []

    def __call__(self, spec: ModelSpec) -> FailingChat:
        self.specs.append(spec)
        if self.error is not None:
            raise self.error
        chat = FailingChat([completion("hello")])
        chat.gate.set()
        self.chats.append(chat)
        return chat


def loaded(folder: Path, text: str) -> tuple[Manifest, SecretResolver]:
    """Return a manifest and the secrets of its environment, which has none."""
    path = folder / "caraway.yaml"
    path.write_text(f"version: v1\nname: test\n{text}")
    manifest = manifests.load(path)
    return manifest, manifests.build_resolver(manifest, {})


def new_history(*, captures_output: bool = False) -> TaskHistory:
    settings = HistorySettings(captures_output=captures_output)
    return TaskHistory(settings, NodeId("node"), time.time_ns)


UNAVAILABLE = ModelError("the provider is away", "unavailable")
