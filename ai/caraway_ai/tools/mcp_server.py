"""MCP servers of the manifest, whose tools become tools of the runtime."""

import asyncio
import importlib
import json
import logging
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caraway_ai.loaded import AGAIN, Loaded, LoadStatus
from caraway_ai.providers.params import scrubbed
from caraway_ai.tools import arguments as arguments_
from caraway_ai.tools.headers import authorization, parsed_headers, secrets_in
from caraway_ai.tools.protocol import Arguments, JsonSchema, Tool, ToolCaller
from caraway_ai.tools.toolbox import is_name
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff
from caraway_core.errors import DeadlineError, NotInstalledError, ToolError
from caraway_core.json_texts import strict_json
from caraway_core.manifest.texts.units import seconds
from caraway_core.manifest.values.declared_tools import DeclaredTool

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult
    from mcp_types import Tool as RemoteTool

logger = logging.getLogger(__name__)
# What it writes of a server that is none has tracebacks, and parts of what the server said. How a
# connection fails is told here.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
_DEFAULT_TIMEOUT_S = 60.0
_RELIST_S = 300.0
_MOST_TOOLS = 500
_MOST_PAGES = 50
_LONGEST_DESCRIPTION = 4_096
_LARGEST_SCHEMA = 64 * 1024
_CONNECTION_CLOSED, _REQUEST_TIMEOUT = -32000, -32001
_SESSION_GONE = "Session terminated"
"""The client's message if a server does not know its session any more."""


@dataclass(frozen=True, slots=True)
class McpConnection:
    """The address of an MCP server, or the process to start; may hold secrets."""

    target: str
    args: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = _DEFAULT_TIMEOUT_S

    @classmethod
    def from_params(
        cls, declared: DeclaredTool, params: Mapping[str, str], env: Mapping[str, str]
    ) -> "McpConnection":
        """Read the params of a server, with secrets filled in.

        Raises:
            ToolError: headers or arguments cannot be read.
        """
        headers = parsed_headers(declared.name, params.get("mcp_headers", ""))
        if token := params.get("mcp_auth_token"):
            headers["authorization"] = authorization(declared.name, "mcp_auth_token", token)
        try:
            args = tuple(shlex.split(params.get("mcp_args", "")))
        except ValueError as exc:
            raise ToolError(f"tool '{declared.name}': mcp_args cannot be read: {exc}") from exc
        timeout_s = seconds(params["timeout"]) if "timeout" in params else _DEFAULT_TIMEOUT_S
        return cls(declared.target, args, headers, dict(env), timeout_s)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that an error must not show."""
        return *secrets_in(self.headers), *secrets_in(self.env)

    @property
    def is_web(self) -> bool:
        return self.target.startswith(("http://", "https://"))


@dataclass(slots=True)
class McpServerState(Loaded["Client", ToolError]):
    """The state of a connection to an MCP server."""

    KIND = "MCP server"
    declared: DeclaredTool

    @property
    def name(self) -> str:
        """The name of its tool in the manifest."""
        return self.declared.name

    @property
    def label(self) -> str:
        """The field of log lines that holds its name."""
        return "tool"


class McpServer:
    """A connection to an MCP server that is kept up, and the tools that it offers."""

    def __init__(self, declared: DeclaredTool, connection: McpConnection) -> None:
        self._state = McpServerState(declared)
        self._name = declared.name
        self._connection = connection
        self._held = AsyncExitStack()
        self._tools: Sequence[McpTool] = ()
        self._is_broken = asyncio.Event()

    @property
    def status(self) -> LoadStatus:
        """The state of the connection."""
        return self._state.status

    @property
    def error(self) -> str:
        """The reason why it is away."""
        return "" if self._state.error is None else self._state.error.message

    @property
    def group(self) -> str:
        return self._name

    def tools(self) -> Sequence[Tool]:
        """Return the tools that the server offers now; none while it is away."""
        return self._tools

    async def wait_settled(self) -> None:
        """Wait until the first attempt to connect succeeded or failed."""
        await self._state.settled.wait()

    async def run(self) -> None:
        """Connect, and connect again whenever the connection breaks, until cancelled."""
        while True:
            await self._state.keep_loading(self._connected, lambda: True)
            try:
                async with self._held:
                    while not await self._breaks():
                        self._tools = await self._listed(self._state.callable())
            except BaseException as exc:
                if tasks.ends(exc):
                    raise
                self._state.has_failed(_failure(exc))
            finally:
                self._state.loaded, self._tools = None, ()
            await asyncio.sleep(Backoff(AGAIN).failed())

    async def call(self, name: str, arguments: Arguments) -> Any:
        """Call a tool of the server.

        Raises:
            ToolError: the server is away, or the tool failed.
        """
        from mcp.shared.exceptions import MCPError

        client = self._state.loaded
        if client is None:
            raise ToolError(f"the MCP server '{self._name}' is away: {self.error}; try again later")
        try:
            answer = await client.call_tool(
                name, dict(arguments), read_timeout_seconds=self._connection.timeout_s
            )
        except MCPError as exc:
            code, told = exc.error.code, exc.error.message
            if code == _REQUEST_TIMEOUT:
                raise DeadlineError(
                    f"the MCP server '{self._name}' does not answer: {told}"
                ) from exc
            if code == _CONNECTION_CLOSED or told == _SESSION_GONE:
                raise self._broken(exc) from exc
            told = scrubbed(told, self._connection.secrets)
            raise ToolError(f"the MCP server '{self._name}' refuses: {told}") from exc
        except Exception as exc:
            raise self._broken(exc) from exc
        if answer.is_error:
            raise ToolError(scrubbed(_texts(answer), self._connection.secrets) or "the tool failed")
        return _value(answer)

    def _broken(self, exc: Exception) -> ToolError:
        self._is_broken.set()
        return ToolError(
            f"the connection to the MCP server '{self._name}' failed ({type(exc).__name__}); try "
            "again"
        )

    async def _connected(self) -> "Client":
        """Connect, and list the tools.

        Raises:
            ToolError: the server is away, or is none.
        """
        try:
            return await self._opened()
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            raise _failure(exc) from exc

    async def _opened(self) -> "Client":
        # A second of imports: in a thread, and only where there is such a server.
        try:
            await asyncio.to_thread(importlib.import_module, "mcp.client.client")
        except ModuleNotFoundError as exc:
            raise NotInstalledError(
                f"MCP servers need the package '{exc.name}', which is not installed; install it "
                "with: pip install 'caraway[models]'"
            ) from exc
        from mcp.client.client import Client

        self._is_broken.clear()
        wait_s = self._connection.timeout_s
        async with AsyncExitStack() as held:
            transport = await held.enter_async_context(self._transport())
            client = await held.enter_async_context(Client(transport, read_timeout_seconds=wait_s))
            async with asyncio.timeout(wait_s):
                self._tools = await self._listed(client)
            self._held = held.pop_all()
        return client

    async def _breaks(self) -> bool:
        """Wait until the connection breaks; return False when the tools are to be listed again."""
        try:
            async with asyncio.timeout(_RELIST_S):
                await self._is_broken.wait()
        except TimeoutError:
            return False
        return True

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        connection = self._connection
        if connection.is_web:
            from mcp.client.streamable_http import streamable_http_client

            from caraway_ai.tools.mcp_http import http_client

            async with http_client(connection.headers) as client:
                yield streamable_http_client(connection.target, http_client=client)
            return
        from mcp.client.stdio import StdioServerParameters

        yield StdioServerParameters(
            command=connection.target, args=list(connection.args), env=dict(connection.env)
        )

    async def _listed(self, client: "Client") -> Sequence["McpTool"]:
        tools: list[McpTool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += filter(None, map(self._tool, page.tools))
            cursor = page.next_cursor
            if cursor is None or len(tools) >= _MOST_TOOLS:
                break
        return tools[:_MOST_TOOLS]

    def _tool(self, remote: "RemoteTool") -> "McpTool | None":
        """Return a tool of the server under its name here, or None if it cannot be used."""
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '_', remote.name)}__{self._name}"
        schema = dict(remote.input_schema or {"type": "object"})
        fault = "" if is_name(name) else "its name is longer than 64 characters"
        if len(json.dumps(schema)) > _LARGEST_SCHEMA:
            fault = f"its schema has more than {_LARGEST_SCHEMA} bytes"
        if fault := fault or arguments_.schema_fault(schema):
            logger.warning("tool of an MCP server left out", extra={"server": self._name,
                           "tool": remote.name[:100], "reason": fault})  # fmt: skip
            return None
        description = (remote.description or remote.title or remote.name)[:_LONGEST_DESCRIPTION]
        return McpTool(name, description, schema, self, remote.name)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server."""

    name: str
    description: str
    parameters: JsonSchema
    server: McpServer
    remote_name: str

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return what the server's tool returns.

        Raises:
            ToolError: the server is away, or the tool failed.
        """
        return await self.server.call(self.remote_name, arguments)


def _texts(answer: "CallToolResult") -> str:
    return "; ".join(part.text for part in answer.content if part.type == "text")


def _value(answer: "CallToolResult") -> Any:
    texts = [part.text for part in answer.content if part.type == "text"]
    if answer.structured_content is not None:
        return answer.structured_content
    if len(answer.content) == len(texts) == 1:
        try:
            return strict_json.parse(texts[0])
        except ValueError:
            return texts[0]
    return [part.model_dump(by_alias=True, exclude_none=True) for part in answer.content]


def _failure(exc: BaseException) -> ToolError:
    return ToolError("; ".join(dict.fromkeys(map(_worded, _leaves(exc)))))


def _leaves(exc: BaseException) -> list[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        return [leaf for each in exc.exceptions for leaf in _leaves(each)]
    return [exc]


def _worded(exc: BaseException) -> str:
    """Name a failure; the text of an unknown one might hold an address with a password."""
    if isinstance(exc, NotInstalledError):
        return exc.message
    if isinstance(exc, FileNotFoundError):
        return "its command was not found"
    code = getattr(getattr(exc, "error", None), "code", None)
    if isinstance(exc, TimeoutError) or code == _REQUEST_TIMEOUT:
        return "it does not answer in time, or not by MCP"
    if code == _CONNECTION_CLOSED:
        return "it closed the connection"
    if code is not None:
        return "it answers, but not as an MCP server"
    return f"it cannot be reached ({type(exc).__name__})"
