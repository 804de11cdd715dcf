"""GGUF models on this machine, over `xllamacpp` in a child process.

A crash of its native code ends the child, which is started again; the runtime lives on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from caraway_ai.local.calling import CallReadingModel
from caraway_ai.local.process import LocalOptions, LocalProcess
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest
from caraway_ai.providers.openai_compatible import OpenAICompatible, WireEndpoint
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.process import cores

Tell = Callable[[str], None]
"""Takes what loading does now, in a few words."""
_MAGIC = b"GGUF"
_CONTEXT = 4096
_PARALLEL = 2
_END_S = 0.5
_AGAIN = Delays(1.0, 60.0)


def build(spec: ModelSpec) -> ChatModel:
    """Build a model from a file on this machine."""
    params = ModelParams(spec)
    text = spec.weights or spec.model
    if not text:
        raise params.wrong("'from: file' names no file; write 'file:path/to/model.gguf'")
    path = spec.base_dir / text
    return LocalModel(spec, params, lambda _tell: path)


class LocalModel:
    """A model in a process of its own, which is started by the first check."""

    def __init__(self, spec: ModelSpec, params: ModelParams, find: Callable[[Tell], Path]) -> None:
        """Take what finds the file; it may block and download, and reports its progress."""
        self._spec = spec
        self._params = params
        self._find = find
        self._gpu_layers = params.count("gpu_layers", 999 if spec.resources.gpu else 0)
        default = spec.resources.cpu or max(1, cores.available() // 2)
        self._threads = params.count("threads", default, least=1)
        self._context_length = params.count("context_length", _CONTEXT, least=64)
        self._parallel = params.count("parallel", _PARALLEL, least=1)
        self._process: LocalProcess | None = None
        self._wire: ChatModel | None = None
        self._starting: asyncio.Task[ChatModel] | None = None
        self._again = Cooldown(_AGAIN)
        self._is_closed = False
        self.progress = ""
        """What loading does now, in a few words; empty when it is over."""

    async def check(self) -> None:
        await self._running()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        wire = await self._running()
        try:
            return await wire.chat(request)
        except ModelError as exc:
            raise await self._explained(exc) from exc

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        wire = await self._running()
        try:
            async with aclosing(wire.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as exc:
            raise await self._explained(exc) from exc

    async def aclose(self) -> None:
        self._is_closed = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        await self._end()

    async def _running(self) -> ChatModel:
        if self._wire is not None and self._process is not None and self._process.is_running:
            return self._wire
        if self._is_closed:
            raise ModelAwayError(f"model '{self._spec.name}' was replaced; try again")
        if self._starting is None:
            if wait_s := self._again.left_s:
                raise ModelAwayError(
                    f"model '{self._spec.name}': its process ended more than once; it is started "
                    f"again in {wait_s:.0f} s",
                    retry_after_s=int(wait_s) + 1,
                )
            self._starting = tasks.begin(self._start(), "start of a local model")
        # Shielded: one waiting call may be cancelled while others wait.
        return await asyncio.shield(self._starting)

    async def _start(self) -> ChatModel:
        try:
            await self._end()
            self.progress = "getting its file"
            path = await asyncio.to_thread(self._checked_file)
            self.progress = f"loading {path.stat().st_size >> 20} MiB"
            options = LocalOptions(
                str(path), self._context_length, self._parallel, self._threads,
                self._gpu_layers, self._spec.resources.memory_bytes, self._template(),
                self._spec.gpus,
            )  # fmt: skip
            self._process = LocalProcess(self._spec.name, options)
            await self._process.start()
            endpoint = WireEndpoint(
                "http://localhost/v1", self._spec.name, self._process.key, "", has_listing=False,
                socket=self._process.socket,
            )  # fmt: skip
            self._wire = CallReadingModel(OpenAICompatible(self._spec, self._params, endpoint))
            return self._wire
        finally:
            # Each start counts: a model that ends at every request is not started without end.
            self._again.failed()
            self._starting = None
            self.progress = ""

    async def _end(self) -> None:
        wire, self._wire = self._wire, None
        process, self._process = self._process, None
        if wire is not None:
            await wire.aclose()
        if process is not None:
            await process.aclose()

    def _checked_file(self) -> Path:
        path = self._find(self._tell)
        try:
            with path.open("rb") as file:
                magic = file.read(len(_MAGIC))
        except OSError as exc:
            raise ModelError(
                f"model '{self._spec.name}': the file '{path}' cannot be read: "
                f"{exc.strerror or exc}",
                "not_found",
            ) from exc
        if magic != _MAGIC:
            raise ModelError(
                f"model '{self._spec.name}': '{path}' is no GGUF file; only those can be run",
                "invalid",
            )
        return path

    def _tell(self, progress: str) -> None:
        self.progress = progress

    def _template(self) -> str:
        found = [file.path for file in self._spec.files if file.type == "chat_template"]
        if not found:
            return ""
        path = self._spec.base_dir / found[0]
        try:
            return path.read_text()
        except (OSError, ValueError) as exc:
            raise ModelError(
                f"model '{self._spec.name}': the chat template '{path}' cannot be read: {exc}",
                "not_found",
            ) from exc

    async def _explained(self, exc: ModelError) -> ModelError:
        if exc.type not in ("failed", "unavailable"):
            return exc
        if self._process is not None and not await self._process.ends(_END_S):
            return exc
        return ModelAwayError(
            f"model '{self._spec.name}': its process ended in the middle of the answer; it is "
            "started again, send the request again"
        )
