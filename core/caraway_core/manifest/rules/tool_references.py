"""Checks that the tools exist which the params of models name."""

from collections.abc import Collection, Iterator, Mapping

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.values.declared_tools import BUILTIN_TOOLS, OTHER_NAMES, DeclaredTool
from caraway_core.sqltext.sql_functions import GROUP, SqlFunction

_MODES = frozenset({"", "all", "disabled", "none", "search_registry"})
_GROUPS = ("auto", "builtin", "manifest", "memory", GROUP)
_OF_SERVER = "__"
"""Separates the name of a tool from that of its MCP server."""


class ToolReferences:
    """The models whose params name tools."""

    def __init__(self) -> None:
        self._models: list[Document] = []

    def add(self, model: Document) -> None:
        """Add a model of the manifest."""
        self._models.append(model)

    def problems(
        self, tools: Mapping[str, DeclaredTool], functions: Collection[SqlFunction]
    ) -> Iterator[Problem]:
        """Yield the names that are neither a tool nor a group of tools."""
        known = {
            *_GROUPS,
            *BUILTIN_TOOLS,
            *OTHER_NAMES,
            *tools,
            *(group for tool in tools.values() for group in tool.groups),
            *(each.name for each in functions if each.as_tool),
        }
        servers = {name for name, tool in tools.items() if tool.kind == "mcp"}
        for model in self._models:
            for name in _names(model):
                # Only a connected server says which tools it has.
                is_of_server = _OF_SERVER in name and name.rpartition(_OF_SERVER)[2] in servers
                if name not in known and not is_of_server:
                    message = registry.unknown("tool or group of tools", name[:100], known)
                    yield model.problem(("params", "tools"), message)


def _names(model: Document) -> Iterator[str]:
    params = model.value.get("params")
    written = params.get("tools") if isinstance(params, dict) else None
    if isinstance(written, str) and written.strip().lower() not in _MODES:
        yield from filter(None, map(str.strip, written.split(",")))
