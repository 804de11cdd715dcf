"""Every tool of a runtime by name and by group: finds, checks, calls, limits and records them."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from caraway_ai.tools import arguments as arguments_
from caraway_ai.tools import bounding
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import Tool, ToolCaller, ToolDefinition
from caraway_core.errors import CarawayError, DeadlineError, NotFoundError, ToolError
from caraway_core.loading import registry
from caraway_core.manifest.values.declared_tools import OTHER_NAMES

BUILTIN = "builtin"
AUTO = "auto"
MEMORY = "memory"
"""The group of the tools that write, which a model gets only where it is named."""
MOST_LISTED = 20
"""From more tools than this, a model gets a search of tools in place of their definitions."""
_OF_MEMORY = (MEMORY, "load_memory", "store_memory")
_NO_MEMORY = "; memories need a dataset `from: memory:store` with `access: read_write`"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolSource(Protocol):
    """Where tools come from: the manifest, the runtime itself, or an MCP server."""

    @property
    def group(self) -> str: ...

    def tools(self) -> Sequence[Tool]:
        """Return the tools that can be called now."""
        ...


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A finished call of a tool."""

    tool_name: str
    arguments: object
    caller: ToolCaller
    start_ns: int
    end_ns: int
    result: object = None
    error: str | None = None


class Toolbox:
    """The tools of a runtime. `sources` may change at any time; earlier ones win a name."""

    def __init__(
        self,
        limits: ToolLimits | None = None,
        record: Callable[[ToolUse], None] = lambda _: None,
    ) -> None:
        self.limits = limits or ToolLimits()
        self.sources: Sequence[ToolSource] = ()
        self.groups: Mapping[str, Sequence[str]] = {}
        """The groups of the manifest; each source is a group, too."""
        self._record = record

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that can be called now."""
        found: dict[str, Tool] = {}
        for source in self.sources:
            for tool in source.tools():
                found.setdefault(tool.name, tool)
        return found

    def definitions(self) -> list[ToolDefinition]:
        """Return all tools as clients see them, in the order of their sources."""
        return [ToolDefinition.from_tool(tool) for tool in self.tools.values()]

    def find(self, name: str) -> Tool:
        """Return the tool with this name.

        Raises:
            NotFoundError: there is none.
        """
        tools = self.tools
        name = OTHER_NAMES.get(name, name)
        if name not in tools:
            raise NotFoundError(registry.unknown("tool", name[:100], tools))
        return tools[name]

    async def call(self, name: str, arguments: object, caller: ToolCaller) -> Any:
        """Call a tool by name; see `use`.

        Raises:
            NotFoundError: there is no such tool.
            CarawayError: as `use`.
        """
        return await self.use(self.find(name), arguments, caller)

    async def use(self, tool: Tool, arguments: object, caller: ToolCaller) -> object:
        """Check the arguments, call the tool within the limits, and record the call.

        Raises:
            ToolArgumentsError: the arguments do not match its parameters.
            DeadlineError: it took too long and was stopped.
            CarawayError: it failed.
        """
        start_ns = time.time_ns()
        caller = replace(caller, span_id=secrets.token_hex(8), parent_span_id=caller.span_id)
        result: object = None
        error: str | None = "failed; the log has the cause"
        try:
            result = await self._bounded(tool, arguments, caller)
            error = None
            return result
        except CarawayError as exc:
            error = exc.message
            raise
        except asyncio.CancelledError:
            error = "the caller went away"
            raise
        finally:
            end_ns = time.time_ns()
            use = ToolUse(tool.name, arguments, caller, start_ns, end_ns, result, error)
            self._record(use)

    async def _bounded(self, tool: Tool, arguments: object, caller: ToolCaller) -> object:
        checked = arguments_.check(tool.name, tool.parameters, arguments)
        limits = self.limits
        try:
            async with asyncio.timeout(limits.timeout_s) as deadline:
                result = await tool.call(checked, caller)
        except TimeoutError as exc:
            if not deadline.expired():
                raise ToolError(f"tool '{tool.name}' failed: a time limit passed") from exc
            raise DeadlineError(
                f"tool '{tool.name}' was stopped after {limits.timeout_s:g} s; ask for less"
            ) from None
        return bounding.bounded(tool.name, result, limits)

    def chosen(self, names: str) -> list[Tool]:
        """Return the tools that a comma list of names and groups stands for.

        Raises:
            ToolError: a name is neither a tool nor a group.
        """
        tools = self.tools
        groups = self._by_group(tools)
        apart = {
            tool.name for each in self.sources if each.group == MEMORY for tool in each.tools()
        }
        found: dict[str, Tool] = {}
        for name in filter(None, map(str.strip, names.split(","))):
            name = OTHER_NAMES.get(name, name)
            if name == AUTO:
                found.update((each, tools[each]) for each in tools if each not in apart)
            elif name in tools:
                found[name] = tools[name]
            elif name in groups:
                found.update((each, tools[each]) for each in groups[name] if each in tools)
            else:
                known = {AUTO, *tools, *groups}
                told = registry.unknown("tool or group of tools", name[:100], known)
                raise ToolError(told + (_NO_MEMORY if name in _OF_MEMORY else ""))
        return list(found.values())

    def _by_group(self, tools: Mapping[str, Tool]) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {name: list(each) for name, each in self.groups.items()}
        for source in self.sources:
            names = [tool.name for tool in source.tools() if tools[tool.name] is tool]
            groups.setdefault(source.group, []).extend(names)
        return groups


def is_name(text: str) -> bool:
    """Return whether providers of models accept a text as the name of a tool."""
    return _NAME.fullmatch(text) is not None


def named(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return tools by name."""
    return {tool.name: tool for tool in tools}
