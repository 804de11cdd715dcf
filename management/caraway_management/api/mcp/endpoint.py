"""`/mcp`: who may reach the MCP server, and where it runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_core.concurrency.tasks import Tasks
from caraway_management.api import failures
from caraway_management.api.authenticating import authenticate
from caraway_management.api.mcp import definitions, serving
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services
from caraway_serving import origins

PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"


class McpGate:
    """Answers requests for `/mcp`, and passes on all others.

    The server starts with its first request.
    """

    def __init__(self, app: ASGIApp, services: Services, routes: "ServedRoutes") -> None:
        self._app = app
        self._services = services
        self._routes = routes
        self._tasks = Tasks()
        self._manager: StreamableHTTPSessionManager | None = None
        self._is_up = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if (refusal := await self._refusal(request)) is not None:
            await refusal(scope, receive, send)
            return
        manager = await self._started()
        await manager.asgi_app(scope, receive, send)

    async def aclose(self) -> None:
        """End the server."""
        await self._tasks.aclose()

    async def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that the server must not see."""
        if not origins.is_origin_allowed(request.headers.get("origin"), self._routes.origins):
            return JSONResponse({"error": "requests of this origin are not allowed"}, 403)
        try:
            async with self._services.database.read() as session:
                await authenticate(request, self._services, session, self._services.now())
        except RefusedError as exc:
            answer = failures.answer(request, exc)
            where = f"{self._services.credentials.public_url}{METADATA_PATH}{PATH}"
            answer.headers["www-authenticate"] = f'Bearer resource_metadata="{where}"'
            return answer
        if request.method != "POST":
            # Without sessions, a stream that a GET opens would stay open and never say anything.
            return JSONResponse({"error": "send messages with POST"}, 405, {"allow": "POST"})
        return None

    async def _started(self) -> StreamableHTTPSessionManager:
        if self._manager is None:
            tools = definitions.read_tools(self._routes.describe())
            manager = self._manager = serving.build_manager(self._routes.app, tools)

            async def run() -> None:
                # One task enters and leaves it, as its cancel scopes ask for.
                async with manager.run():
                    self._is_up.set()
                    await asyncio.Event().wait()

            self._tasks.spawn(run(), "serve MCP")
        await self._is_up.wait()
        return self._manager


class ServedRoutes:
    """The parts of the application that the endpoint uses, and the allowed origins."""

    def __init__(
        self,
        app: ASGIApp,
        describe: Callable[[], Mapping[str, object]],
        origins: Sequence[str] = (),
    ) -> None:
        self.app = app
        self.describe = describe
        self.origins = tuple(origins)
