"""Routes whose endpoint takes the request alone, called without what injects other parameters."""

import inspect
from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """A route that calls its endpoint at once where the request is its only parameter.

    FastAPI's way there takes as long as a tenth of a small statement. Routes with other parameters
    take it. Errors are handled by the application, as they are for all routes.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
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
