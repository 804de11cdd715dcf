"""Chat models that executors host: what crosses to them, and how calls are written."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson

from caraway_ai.local import sent_files
from caraway_ai.local.sent_files import SentFile
from caraway_ai.protocols import ChatChunk, ChatModel, ChatRequest
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.hosting import HostedModel, HostedSpec, HostRoom


@dataclass(frozen=True, slots=True)
class HostedChatSpec(HostedSpec):
    """A chat model for executors; files that are fetched go to a folder of each.

    `sent` are its files in a result store. An executor that has none of that size fetches it.
    """

    model: ModelSpec
    sent: tuple[SentFile, ...] = ()

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def key(self) -> str:
        kept = {field.name: getattr(self.model, field.name) for field in fields(self.model)}
        del kept["cache_dir"], kept["gpus"]
        kept["sent"] = [each.sha256 for each in self.sent]
        text = orjson.dumps(kept, default=str, option=orjson.OPT_SORT_KEYS)
        return f"chat-{hashlib.sha256(text).hexdigest()[:32]}"

    def build(self, room: HostRoom) -> HostedModel:
        gpus = room.gpus if self.model.resources.gpu else None
        here = replace(self.model, cache_dir=Path(room.folder), gpus=gpus)
        return HostedChat(here, self.sent, self.key)


class HostedChat:
    """A copy of a chat model."""

    def __init__(self, spec: ModelSpec, sent: tuple[SentFile, ...] = (), key: str = "") -> None:
        self._spec = spec
        self._sent = sent
        self._key = key
        self._chat: ChatModel | None = None
        self._fetched: dict[str, Path] = {}
        """By the path that the manifest has."""
        self._progress = "loading"

    @property
    def progress(self) -> str:
        return str(getattr(self._chat, "progress", self._progress))

    async def load(self) -> bytes:
        try:
            if self._chat is None:
                await self._fetch()
                spec = self._spec.with_files(self._fetched)
                # Packages of providers are slow to import.
                self._chat = await asyncio.to_thread(spec.build)
            await self._chat.check()
        except ModelError as exc:
            if self._spec.provider == "file" and exc.type == "not_found":
                raise ModelError(
                    f"{exc.message}; an executor hosts it: let its scheduler have the file and set "
                    "runtime.scheduler.state_location, mount a volume at this path on executors, "
                    "or use 'huggingface:'",
                    exc.type,
                ) from exc
            raise
        return b"{}"

    async def _fetch(self) -> None:
        for number, file in enumerate(self._sent):
            here = self._spec.base_dir / file.path
            if here.is_file() and here.stat().st_size == file.size_bytes:
                continue
            # Its own, even if another model has the same file: it is removed with this one.
            target = self._spec.cache_dir / f"{self._key}-{number}{here.suffix}"
            if not target.exists():
                try:
                    await sent_files.fetch(file, target, self._tell)
                except ModelError as exc:
                    message = f"model '{self._spec.name}': {exc.message}"
                    raise ModelError(message, exc.type) from exc
            self._fetched[file.path] = target
        self._progress = "loading"

    def _tell(self, progress: str) -> None:
        self._progress = progress

    async def answer(self, request: bytes) -> AsyncGenerator[bytes, None]:
        if self._chat is None:
            raise ModelAwayError(f"model '{self._spec.name}' is not loaded")
        call: dict[str, Any] = orjson.loads(request)
        if not call["stream"]:
            yield orjson.dumps(await self._chat.chat(call["request"]))
            return
        async with aclosing(self._chat.stream(call["request"])) as chunks:
            async for chunk in chunks:
                yield orjson.dumps(chunk)

    async def aclose(self) -> None:
        if self._chat is not None:
            await self._chat.aclose()
        for path in self._fetched.values():
            path.unlink(missing_ok=True)


def call_of(request: ChatRequest, *, is_stream: bool) -> bytes:
    """Return a call of a hosted model.

    Raises:
        ModelInputError: the request cannot be written as JSON.
    """
    try:
        return orjson.dumps({"stream": is_stream, "request": request})
    except orjson.JSONEncodeError as exc:
        raise ModelInputError(f"the request cannot be sent as JSON: {exc}") from exc


def chunk_of(part: bytes) -> ChatChunk:
    """Return the answer, or the chunk of one, that a part holds."""
    chunk: ChatChunk = orjson.loads(part)
    return chunk
