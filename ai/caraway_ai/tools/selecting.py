"""Chooses the tools of one model: `auto`, `all`, `search_registry`, or names and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_ai.tools import toolbox as toolboxes
from caraway_ai.tools.protocol import Tool, ToolCaller, ToolDefinition
from caraway_ai.tools.registry_tools import ToolInvocation, ToolSearchTool
from caraway_ai.tools.tool_search import Embed
from caraway_ai.tools.toolbox import MOST_LISTED, Toolbox
from caraway_core.errors import NotFoundError
from caraway_core.loading import registry


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools that a model may call."""

    toolbox: Toolbox
    tools: Mapping[str, Tool]

    @property
    def definitions(self) -> list[ToolDefinition]:
        """The tools as the model sees them."""
        return [ToolDefinition.from_tool(tool) for tool in self.tools.values()]

    async def call(self, name: str, arguments: object, caller: ToolCaller) -> Any:
        """Call a tool of the selection.

        Raises:
            CarawayError: the model has no such tool, or it failed.
        """
        if name not in self.tools:
            raise NotFoundError(registry.unknown("tool", name[:100], self.tools))
        return await self.toolbox.use(self.tools[name], arguments, caller)


def select(toolbox: Toolbox, mode: str, embed: Embed | None = None) -> ToolSelection:
    """Return the tools that a model's param `tools` asks for.

    Raises:
        ToolError: it names a tool or group that is not known.
    """
    match mode.strip().lower():
        case "" | "disabled" | "none":
            return ToolSelection(toolbox, {})
        case "all":
            return ToolSelection(toolbox, toolbox.tools)
        case "search_registry":
            tools, wants_search = toolbox.chosen(toolboxes.AUTO), True
        case _:
            tools = toolbox.chosen(mode)
            wants_search = len(tools) > MOST_LISTED
    if wants_search:
        return ToolSelection(toolbox, toolboxes.named(_registry(toolbox, tools, embed)))
    return ToolSelection(toolbox, toolboxes.named(tools))


def _registry(toolbox: Toolbox, tools: Sequence[Tool], embed: Embed | None) -> Sequence[Tool]:
    by_name = toolboxes.named(tools)
    definitions = [ToolDefinition.from_tool(tool) for tool in tools]
    return ToolSearchTool(definitions, embed), ToolInvocation(toolbox, by_name)
