"""A provider that answers as a test scripts it, and remembers its requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.kit.listening import listening

Script = list[Any]
"""Of a stream: objects are sent as frames, bytes as they are, an Event is waited for."""


def chunk(content: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """Return one chunk of an answer."""
    said = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": {**said, **delta}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x",
            "choices": [choice]}  # fmt: skip


def completion(content: str | None = "hello", **message: Any) -> dict[str, Any]:
    """Return a whole answer."""
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message},
              "logprobs": None, "finish_reason": finish}  # fmt: skip
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "x",
            "choices": [choice], "usage": usage}  # fmt: skip


@dataclass(slots=True)
class ScriptedProvider:
    """The answers come in turn; the last one is repeated."""

    url: str = ""
    answers: list[dict[str, Any] | Response] = field(default_factory=lambda: [completion()])
    streams: list[Script] = field(
        default_factory=lambda: [
            [chunk("hel"), chunk("lo"), chunk(finish="stop"), b"data: [DONE]\n\n"]
        ]
    )
    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a stream was broken off by its client."""

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if body.get("stream"):
            script = self.streams.pop(0) if len(self.streams) > 1 else self.streams[0]
            return StreamingResponse(self._play(script), media_type="text/event-stream")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    async def _play(self, script: Script) -> AsyncIterator[bytes]:
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, bytes):
                    yield step
                else:
                    yield b"data: " + json.dumps(step).encode() + b"\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            self.left.set()
            raise


@asynccontextmanager
async def scripted(
    path: str = "/v1/chat/completions", change: Callable[[ScriptedProvider], None] | None = None
) -> AsyncIterator[ScriptedProvider]:
    """Serve a scripted provider until the block ends."""
    provider = ScriptedProvider()
    if change is not None:
        change(provider)
    listing = Route("/{rest:path}", lambda _: JSONResponse({"data": []}))
    app = Starlette(routes=[Route(path, provider.answer, methods=["POST"]), listing])
    async with listening(app) as url:
        provider.url = f"{url}/v1"
        yield provider
