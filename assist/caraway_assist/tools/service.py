"""Keeps the tools of the manifest that is served, and the connections to MCP servers."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from caraway_ai import json_values
from caraway_ai.tools import selecting
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.builtin import BuiltinTools
from caraway_ai.tools.data_access import RowLimits
from caraway_ai.tools.memory_tools import MemoryTools
from caraway_ai.tools.protocol import Tool
from caraway_ai.tools.selecting import ToolSelection
from caraway_ai.tools.statement_tools import FunctionTools, SqlTool
from caraway_ai.tools.tool_search import Embed
from caraway_ai.tools.toolbox import Toolbox, ToolUse
from caraway_assist.search.service import SearchService
from caraway_assist.tools import memories
from caraway_assist.tools.data import RuntimeData, span_of
from caraway_assist.tools.meanings import TextEmbedder
from caraway_assist.tools.memories import MemoryDataset
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.manifest import Manifest, SecretResolver
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.queries.service import QueryService

if TYPE_CHECKING:
    from caraway_ai.tools.mcp_server import McpServer

logger = logging.getLogger(__name__)
_NOTE_BYTES = 1_024
"""Room for the note on a result that was cut."""
_MANIFEST = "manifest"
_LONGEST_OUTPUT = 8_192


class DeclaredTools:
    """The source of the tools that the manifest holds whole."""

    group = _MANIFEST

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        return self._tools


class ToolService:
    """The tools of one process; `apply` follows the manifest."""

    def __init__(
        self,
        queries: QueryService,
        catalog: Catalog,
        history: TaskHistory,
        searches: SearchService | None = None,
        limits: ToolLimits | None = None,
        meanings: TextEmbedder | None = None,
    ) -> None:
        self.toolbox = Toolbox(limits, recorder(history))
        self.data = RuntimeData(queries, catalog, searches)
        self._meanings = meanings
        bounds = self.toolbox.limits
        self._rows = RowLimits(bounds.rows, bounds.bytes - _NOTE_BYTES)
        self._builtin = BuiltinTools(self.data, self._rows)
        self._queries = queries
        self._servers: dict[str, _Connected] = {}
        self._tasks = tasks.Tasks()
        self._failed: dict[str, str] = {}
        self.toolbox.sources = (self._builtin,)

    @property
    def embed(self) -> Embed | None:
        """Ranks tools and tables by meaning where an embedding model is loaded."""
        return self._meanings.embed if self._meanings is not None else None

    def select(self, mode: str) -> ToolSelection:
        """Return the tools that a model's param `tools` asks for.

        Raises:
            ToolError: it names a tool or group that is not known.
        """
        return selecting.select(self.toolbox, mode, self.embed)

    @property
    def statuses(self) -> Mapping[str, str]:
        """The status of every tool of the manifest: `ready`, `initializing`, or `error`."""
        found = {name: each.server.status for name, each in self._servers.items()}
        ready = dict.fromkeys(
            (tool.name for source in self.toolbox.sources[1:3] for tool in source.tools()), "ready"
        )
        return {**ready, **found, **dict.fromkeys(self._failed, "error")}

    def apply(self, manifest: Manifest, secrets: SecretResolver) -> None:
        """Follow a manifest: connect to new MCP servers, leave those that are gone.

        A tool that cannot be made is logged and left out; the rest works.
        """
        self._failed = {}
        self._builtin.allowed = None
        tools: list[Tool] = []
        kept: dict[str, _Connected] = {}
        for declared in manifest.tools:
            try:
                self._add(declared, secrets, tools, kept)
            except CarawayError as exc:
                self._failed[declared.name] = exc.message
                logger.warning("tool left out", extra={"tool": declared.name,
                               "reason": exc.message})  # fmt: skip
        for name, each in self._servers.items():
            if kept.get(name) is not each:
                each.connection.cancel()
        self._servers = kept
        servers = (each.server for each in kept.values())
        self.toolbox.sources = [
            self._builtin,
            DeclaredTools(tools),
            FunctionTools(manifest.functions, self.data, self._rows),
            *self._memory(manifest),
            *servers,
        ]
        self.toolbox.groups = _groups(manifest.tools)

    async def wait_settled(self) -> None:
        """Wait until the first connection to every MCP server succeeded or failed."""
        for each in list(self._servers.values()):
            await each.server.wait_settled()

    async def aclose(self) -> None:
        """Leave all MCP servers."""
        await self._tasks.aclose()

    def _memory(self, manifest: Manifest) -> Sequence[MemoryTools]:
        if (table := memories.find(manifest.datasets)) is None:
            return ()
        return (MemoryTools(self.data, MemoryDataset(table, self._queries), self._rows),)

    def _add(
        self,
        declared: DeclaredTool,
        secrets: SecretResolver,
        tools: list[Tool],
        kept: dict[str, "_Connected"],
    ) -> None:
        match declared.kind:
            case "builtin":
                allowed = declared.params.get("table_allowlist")
                if allowed is not None:
                    self._builtin.allowed = frozenset(map(str.strip, allowed.split(",")))
            case "sql":
                tools.append(SqlTool(declared, self.data, self._rows))
            case "http":
                # Most manifests have no such tool, and every start would load its module.
                from caraway_ai.tools.http_tool import HttpService, HttpTool

                params = secrets.expand_all(declared.params)
                tools.append(HttpTool(declared, HttpService.from_params(declared, params)))
            case "websearch":
                # As for HTTP.
                from caraway_ai.tools.web_search import WebSearchTool

                tools.append(WebSearchTool(declared, secrets.expand_all(declared.params)))
            case "mcp":
                known = self._servers.get(declared.name)
                is_same = known is not None and known.declared == declared
                kept[declared.name] = (
                    known if known and is_same else self._connect(declared, secrets)
                )

    def _connect(self, declared: DeclaredTool, secrets: SecretResolver) -> "_Connected":
        # As for HTTP.
        from caraway_ai.tools.mcp_server import McpConnection, McpServer

        params = secrets.expand_all(declared.params)
        env = secrets.expand_all(declared.env)
        server = McpServer(declared, McpConnection.from_params(declared, params, env))
        connection = self._tasks.spawn(server.run(), "keep an MCP server", tool=declared.name)
        return _Connected(declared, server, connection)


@dataclass(frozen=True, slots=True, eq=False)
class _Connected:
    declared: DeclaredTool
    server: "McpServer"
    connection: "asyncio.Task[None]"


def _groups(tools: Sequence[DeclaredTool]) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for tool in tools:
        for group in tool.groups:
            groups.setdefault(group, []).append(tool.name)
    return groups


def recorder(history: TaskHistory) -> Callable[[ToolUse], None]:
    """Return the function that records a finished call as a task `tool_use::<name>`."""

    def record(use: ToolUse) -> None:
        output = None
        if history.settings.captures_output and use.error is None:
            output = _text(use.result)[:_LONGEST_OUTPUT]
        history.add(
            TaskRecord(
                span=span_of(use.caller),
                task=f"tool_use::{use.tool_name}",
                input=_text(use.arguments),
                start_ns=use.start_ns,
                end_ns=use.end_ns,
                error_message=use.error,
                captured_output=output,
                labels={"tool": use.tool_name},
                principal=use.caller.principal,
            )
        )

    return record


def _text(value: object) -> str:
    return json_values.dumped(value).decode()
