"""Starts the MCP server with its first request, and hands requests to it."""

import asyncio
import importlib
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from starlette.types import Message, Receive, Scope, Send

from caraway_ai.tools.toolbox import Toolbox
from caraway_core.concurrency import tasks
from caraway_core.errors import NotInstalledError
from caraway_gateway.mcp.sessions import McpSession, McpSessions
from caraway_serving.access import Principal
from caraway_serving.replaying import replayed

if TYPE_CHECKING:
    from caraway_gateway.mcp.serving import McpServing

_JSON, _EVENTS = "application/json", "text/event-stream"


class McpEndpoint:
    """The MCP server of one process. Its sessions end with the process."""

    def __init__(
        self,
        toolbox: Toolbox,
        hosts: Sequence[str],
        origins: Sequence[str],
        most_sessions_of_key: int = 1_000,
    ) -> None:
        self.sessions = McpSessions(most_sessions_of_key, self)
        self.hosts = hosts
        self.origins = origins
        self._toolbox = toolbox
        self._serving: asyncio.Task[McpServing] | None = None
        self._tasks = tasks.Tasks()

    async def handle(
        self, principal: Principal, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request whose body was read.

        Raises:
            NotInstalledError: the MCP library is not installed.
        """
        if self._serving is None:
            self._serving = self._tasks.spawn(self._start(), "start the MCP server")
        serving = await asyncio.shield(self._serving)
        from caraway_gateway.mcp.serving import user_of

        wants_events = _accepts_only_events(scope)
        asked = {**scope, "user": user_of(principal.id)}
        if wants_events and scope["method"] == "POST":
            asked["headers"] = _accepting_json(scope)
            send = _AsEvent(send)
        if scope["method"] == "DELETE":
            send = _without_content(send)
        send = self.sessions.following(principal.id, scope, send)
        await serving.manager.asgi_app(asked, replayed(body, receive), send)

    async def aclose(self) -> None:
        """End all sessions."""
        await self._tasks.aclose()
        self.sessions.quota.clear()
        self._serving = None

    async def end_session(self, session: McpSession) -> None:
        """End a session as its client would."""
        assert self._serving is not None
        serving = await self._serving
        self._tasks.spawn(serving.end(*session), "end a session of MCP")

    async def _start(self) -> "McpServing":
        try:
            module = await asyncio.to_thread(importlib.import_module, "caraway_gateway.mcp.serving")
        except ModuleNotFoundError as exc:
            self._serving = None
            raise NotInstalledError(
                f"MCP needs the package '{exc.name}', which is not installed; install it with: "
                "pip install 'caraway[models]'"
            ) from exc
        serving: McpServing = module.McpServing(self._toolbox, metadata.version("caraway"))
        is_up = asyncio.Event()
        self._tasks.spawn(_run(serving, is_up), "serve MCP")
        await is_up.wait()
        return serving


async def _run(serving: "McpServing", is_up: asyncio.Event) -> None:
    # One task enters and leaves it, as its cancel scopes ask for.
    async with serving.manager.run():
        is_up.set()
        await asyncio.Event().wait()


def _accepts_only_events(scope: Scope) -> bool:
    accepted = _accept(scope)
    return _EVENTS in accepted and _JSON not in accepted and "*/*" not in accepted


def _accept(scope: Scope) -> str:
    found = [value for name, value in scope["headers"] if name == b"accept"]
    return b",".join(found).decode("latin-1").lower()


def _accepting_json(scope: Scope) -> list[tuple[bytes, bytes]]:
    others = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return [*others, (b"accept", f"{_JSON}, {_EVENTS}".encode())]


def _without_content(send: Send) -> Send:
    """Answer 204 where the library answers 200 without a body."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message["status"] = 204
            message["headers"] = [
                header for header in message.get("headers", ()) if header[0] != b"content-length"
            ]
        await send(message)

    return sent


class _AsEvent:
    """Sends a JSON answer as the one event of a stream, for clients that accept only streams."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message.get("headers", ()))
            is_answer = message["status"] == 200 and headers.get(b"content-type", b"").startswith(
                _JSON.encode()
            )
            if not is_answer:
                await self._send(message)
                return
            headers[b"content-type"] = _EVENTS.encode()
            headers.pop(b"content-length", None)
            self._start = {**message, "headers": list(headers.items())}
            return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            await self._send(self._start)
            event = b"event: message\ndata: " + bytes(self._body) + b"\n\n"
            await self._send({"type": "http.response.body", "body": event})
