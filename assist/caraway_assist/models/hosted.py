"""A chat model whose copies executors host."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from caraway_ai.hosting import HostedChatSpec, call_of, chunk_of
from caraway_ai.local.sent_files import SentFile
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest
from caraway_ai.specs import ModelSpec
from caraway_assist.hosting.copies import Copies
from caraway_assist.hosting.service import Hosting
from caraway_core.errors import ModelError


class HostedChatModel:
    """Implements `ChatModel` over the copies of a model."""

    def __init__(self, spec: ModelSpec, hosting: Hosting, sent: tuple[SentFile, ...] = ()) -> None:
        """Take the files of the model that executors can fetch."""
        self._hosting = hosting
        self.copies: Copies = hosting.host(HostedChatSpec(spec, sent), spec.resources)

    async def check(self) -> None:
        await self.copies.wait_usable()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        async with aclosing(self.copies.call(call_of(request, is_stream=False))) as parts:
            async for part in parts:
                return chunk_of(part)
        raise ModelError(f"model '{self.copies.name}': its executor sent no answer", "failed")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        async with aclosing(self.copies.call(call_of(request, is_stream=True))) as parts:
            async for part in parts:
                yield chunk_of(part)

    async def aclose(self) -> None:
        await self._hosting.release(self.copies)
