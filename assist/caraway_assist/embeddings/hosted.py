"""An embedding model whose copies executors host."""

import asyncio
from collections.abc import Sequence

import orjson

from caraway_assist.hosting.copies import Copies
from caraway_assist.hosting.service import Hosting
from caraway_core.errors import ModelAwayError
from caraway_core.manifest.models import ModelResources
from caraway_core.protocols.embedding import EmbeddedTexts, EmbedderSpec
from caraway_plugins.embeddings.hosted import HostedEmbedderSpec, answer_of, call_of


class HostedEmbedder:
    """Implements `Embedder` over the copies of a model, which the loop of the scheduler calls."""

    is_remote = True
    is_quick = False

    def __init__(self, copies: Copies, loop: asyncio.AbstractEventLoop) -> None:
        """Take copies of which one is ready."""
        facts = orjson.loads(copies.facts)
        self.identity: str = facts["identity"]
        self.dimensions: int = facts["dimensions"]
        self._copies = copies
        self._loop = loop

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> EmbeddedTexts:
        return self._embed(call_of(texts, is_tokens=False, dimensions=dimensions))

    def embed_tokens(
        self, tokens: Sequence[Sequence[int]], dimensions: int | None = None
    ) -> EmbeddedTexts:
        return self._embed(call_of(tokens, is_tokens=True, dimensions=dimensions))

    def close(self) -> None:
        """Do nothing: the owner of the copies releases them."""

    def _embed(self, call: bytes) -> EmbeddedTexts:
        if self._loop.is_closed():
            raise ModelAwayError(f"embedding model '{self._copies.name}': the process is ending")
        return asyncio.run_coroutine_threadsafe(self._asked(call), self._loop).result()

    async def _asked(self, call: bytes) -> EmbeddedTexts:
        return answer_of([part async for part in self._copies.call(call)])


def hosted(hosting: Hosting, spec: EmbedderSpec, resources: ModelResources) -> Copies:
    """Begin to host a model."""
    return hosting.host(HostedEmbedderSpec(spec, resources.cpu or 1), resources)
