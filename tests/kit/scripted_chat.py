"""A chat model that answers what a test scripts, without a server."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest
from tests.kit.scripted_provider import chunk, completion


def calling(*wanted: tuple[str, str], content: str | None = None) -> ChatCompletion:
    """An answer that calls tools with these names and arguments."""
    calls = [
        {"id": f"id{number}", "type": "function", "function": {"name": name, "arguments": text}}
        for number, (name, text) in enumerate(wanted)
    ]
    return completion(content, tool_calls=calls)


@dataclass(slots=True)
class ScriptedChat:
    """The answers come in turn; the last one is repeated. Streams are cut into small pieces."""

    answers: list[ChatCompletion]
    requests: list[ChatRequest] = field(default_factory=list)
    is_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def check(self) -> None:
        """Nothing can be wrong."""

    async def aclose(self) -> None:
        """Nothing is held."""

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        answer = await self.chat(request)
        message = answer["choices"][0]["message"]
        try:
            yield chunk(role="assistant", content="")
            for letter in message["content"] or "":
                yield chunk(letter)
            for index, call in enumerate(message.get("tool_calls") or ()):
                for fragment in _fragments(index, call):
                    yield chunk(tool_calls=[fragment])
            yield chunk(finish=answer["choices"][0]["finish_reason"])
            yield {**chunk(), "choices": [], "usage": answer["usage"]}
        finally:
            self.is_left.set()


def _fragments(index: int, call: dict[str, Any]) -> list[dict[str, Any]]:
    if "function" not in call:
        return [{**call, "index": index}]
    function, text = call["function"], call["function"]["arguments"]
    first = {**call, "index": index, "function": {**function, "arguments": ""}}
    half = len(text) // 2
    rest = [
        {"index": index, "function": {"arguments": part}} for part in (text[:half], text[half:])
    ]
    return [first, *rest]
