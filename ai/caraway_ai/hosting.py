"""Chat models that executors host: what crosses to them, and how calls are written."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson

from caraway_ai.protocols import ChatChunk, ChatModel, ChatRequest
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from caraway_core.protocols.hosting import HostedModel, HostedSpec, HostRoom


@dataclass(frozen=True, slots=True)
class HostedChatSpec(HostedSpec):
    """A chat model for executors; files that are downloaded go to a folder of each."""

    model: ModelSpec

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def key(self) -> str:
        kept = {field.name: getattr(self.model, field.name) for field in fields(self.model)}
        del kept["cache_dir"], kept["gpus"]
        text = orjson.dumps(kept, default=str, option=orjson.OPT_SORT_KEYS)
        return f"chat-{hashlib.sha256(text).hexdigest()[:32]}"

    def build(self, room: HostRoom) -> HostedModel:
        gpus = room.gpus if self.model.resources.gpu else None
        here = replace(self.model, cache_dir=Path(room.folder), gpus=gpus)
        return HostedChat(here.build(), is_file=here.provider == "file")


class HostedChat:
    """A copy of a chat model."""

    def __init__(self, chat: ChatModel, *, is_file: bool = False) -> None:
        self._chat = chat
        self._is_file = is_file

    @property
    def progress(self) -> str:
        return str(getattr(self._chat, "progress", "loading"))

    async def load(self) -> bytes:
        try:
            await self._chat.check()
        except ModelError as exc:
            if self._is_file and exc.type == "not_found":
                raise ModelError(
                    f"{exc.message}; an executor hosts it, so the file must be at this path on "
                    "executors: mount a volume there, or use 'huggingface:'",
                    exc.type,
                ) from exc
            raise
        return b"{}"

    async def answer(self, request: bytes) -> AsyncGenerator[bytes, None]:
        call: dict[str, Any] = orjson.loads(request)
        if not call["stream"]:
            yield orjson.dumps(await self._chat.chat(call["request"]))
            return
        async with aclosing(self._chat.stream(call["request"])) as chunks:
            async for chunk in chunks:
                yield orjson.dumps(chunk)

    async def aclose(self) -> None:
        await self._chat.aclose()


def call_of(request: ChatRequest, *, is_stream: bool) -> bytes:
    """Return a call of a hosted model."""
    return orjson.dumps({"stream": is_stream, "request": request})


def chunk_of(part: bytes) -> ChatChunk:
    """Return the answer, or the chunk of one, that a part holds."""
    found: ChatChunk = orjson.loads(part)
    return found
