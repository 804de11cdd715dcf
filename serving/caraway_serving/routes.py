"""Routes that call their endpoint directly, and redirects that are relative."""

import inspect
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """A route that calls its endpoint at once where the request is its only parameter.

    FastAPI's way there takes as long as a tenth of a small statement. Routes with other parameters
    take it. Errors are handled by the application, as they are for all routes.
    """

    def __init__(self, path: str, endpoint: Callable[..., object], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        takes = inspect.signature(endpoint).parameters
        self._direct_methods = self.methods or set() if [*takes] == ["request"] else set()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the path of this route."""
        if scope["method"] not in self._direct_methods:
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


def redirect_slashes(router: Router) -> None:
    """Redirect requests whose path ends in a slash to the route without it.

    The address is relative. That of Starlette has the host that the request names, and lacks the
    prefix below which a proxy serves the router.
    """
    router.redirect_slashes = False
    otherwise = router.default

    async def default(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        stripped = {**scope, "path": path[:-1]}
        is_one = scope["type"] == "http" and path.endswith("/") and not path.endswith("//")
        if not is_one or not any(_matches(route, stripped) for route in router.routes):
            await otherwise(scope, receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        target = f"../{quote(stripped['path'].rpartition('/')[2])}"
        redirect = RedirectResponse(f"{target}?{query}" if query else target, 307)
        await redirect(scope, receive, send)

    router.default = default


def _matches(route: BaseRoute, scope: Scope) -> bool:
    return route.matches(scope)[0] is not Match.NONE
