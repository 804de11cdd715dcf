"""Tools for tests, and data that they read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caraway_ai.tools.protocol import Arguments, JsonSchema, Tool, ToolCaller

ANY: JsonSchema = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class FakeTool:
    """A tool that answers what `answer` returns."""

    name: str
    answer: Callable[[Arguments], Awaitable[Any]]
    description: str = "A tool"
    parameters: JsonSchema = field(default_factory=lambda: ANY)

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        return await self.answer(arguments)


@dataclass(frozen=True, slots=True)
class FixedTools:
    """A source of some tools."""

    group: str
    held: tuple[Tool, ...]

    def tools(self) -> tuple[Tool, ...]:
        return self.held


def echoing(name: str, description: str = "A tool", **properties: Mapping[str, Any]) -> FakeTool:
    """A tool that returns its arguments."""

    async def answer(arguments: Arguments) -> Any:
        return dict(arguments)

    schema = {"type": "object", "properties": dict(properties)} if properties else ANY
    return FakeTool(name, answer, description, schema)


def returning(name: str, result: Any) -> FakeTool:
    """A tool that always returns the same."""

    async def answer(arguments: Arguments) -> Any:
        return result

    return FakeTool(name, answer)
