"""The two tools that a model gets in place of many: one finds tools, the other calls them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from caraway_ai.tools import bounding
from caraway_ai.tools.protocol import Arguments, JsonSchema, Tool, ToolCaller, ToolDefinition
from caraway_ai.tools.tool_search import Embed, ToolIndex, ToolMatch, ToolQuery
from caraway_ai.tools.toolbox import MOST_LISTED, Toolbox
from caraway_core.errors import NotFoundError
from caraway_core.loading import registry


class ToolSearchTool:
    """Finds the tools for a task."""

    name = "tool_search"
    description = (
        "Find the tools for a task. Returns each tool with its description and parameters; call "
        "one with tool_invoke."
    )
    parameters: ClassVar[JsonSchema] = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What the tool should do."},
            "keywords": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Words that the name or description of the tool contains.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 5},
            "min_score": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["query"],
        "additionalProperties": False,
    }

    def __init__(self, tools: Sequence[ToolDefinition], embed: Embed | None = None) -> None:
        self._tools = tools
        self._index: ToolIndex | None = None
        self._embed = embed

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the best tools, best first."""
        query = ToolQuery(
            arguments["query"],
            tuple(arguments.get("keywords", ())),
            arguments.get("limit", 5),
            arguments.get("min_score", 0.0),
        )
        if self._index is None:
            self._index = ToolIndex(self._tools)
        matches = await self._index.search(query, self._embed)
        return {
            "query": query.text,
            "keywords": list(query.keywords),
            "search_mode": "hybrid_rrf",
            "tools": list(map(_told, matches)),
        }


class ToolInvocation:
    """Calls a tool that was found."""

    name = bounding.INVOCATION
    description = "Call a tool that tool_search returned."
    parameters: ClassVar[JsonSchema] = {
        "type": "object",
        "properties": {
            "tool_id": {"type": "string", "description": "The tool_id from tool_search."},
            "arguments": {
                "type": "object",
                "description": "The arguments, as the tool's parameters describe them.",
            },
        },
        "required": ["tool_id"],
        "additionalProperties": False,
    }

    def __init__(self, toolbox: Toolbox, tools: Mapping[str, Tool]) -> None:
        """Take the tools that may be called."""
        self._toolbox = toolbox
        self._tools = tools

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the result of the tool.

        Raises:
            NotFoundError: there is no such tool.
            CarawayError: it failed.
        """
        name = arguments["tool_id"]
        if name not in self._tools:
            raise NotFoundError(
                f"no tool '{name[:100]}'; call tool_search to find one"
                if len(self._tools) > MOST_LISTED
                else registry.unknown("tool", name[:100], self._tools)
            )
        given = arguments.get("arguments", {})
        result = await self._toolbox.use(self._tools[name], given, caller)
        return {"tool_id": name, "result": result}


def _told(match: ToolMatch) -> dict[str, object]:
    return {
        "tool_id": match.tool.name,
        "description": match.tool.description,
        "parameters": match.tool.parameters,
        "score": match.score,
        "matched_terms": list(match.matched_terms),
        "match_sources": [
            {"source": each.source, "rank": each.rank, "score": each.score}
            for each in match.sources
        ],
    }
