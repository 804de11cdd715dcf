"""Finds the route of a request by parts of its path, where a router tries one after the other."""

from collections import defaultdict

from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

_NAMES = (0, 1, 3)
"""The places of names in paths such as `/v1/projects/{projectId}/queries`."""
_Key = tuple[str | int, ...]


def add_routes(app: FastAPI, router: APIRouter) -> None:
    """Add the routes of a router to an application, also those that it includes.

    An included router tries its routes once to see that one of them matches, and again to find it.
    """
    for route in iter_route_contexts(router.routes):
        assert route.path is not None, "all are routes of the API"
        assert route.endpoint is not None, "all are routes of the API"
        app.add_api_route(
            route.path,
            route.endpoint,
            response_model=route.response_model,
            status_code=route.status_code,
            tags=route.tags,
            dependencies=route.dependencies,
            responses=route.responses,
            methods=sorted(route.methods or ()),
            include_in_schema=route.include_in_schema,
            response_class=route.response_class,
            name=route.name,
            openapi_extra=route.openapi_extra,
        )
    app.router.middleware_stack = RouteIndex(app.router)


class RouteIndex:
    """The routes of a router in small groups. A path belongs to one of them, or to none.

    A route with a parameter in the place of a name is found by the whole router.
    """

    def __init__(self, router: Router) -> None:
        self._router = router
        groups: dict[_Key, list[BaseRoute]] = defaultdict(list)
        for route in router.routes:
            assert isinstance(route, Route), "all are routes with a path"
            groups[_key(route.path)].append(route)
        self._groups = {key: Router(routes) for key, routes in groups.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self._groups.get(_key(scope["path"])) if scope["type"] == "http" else None
        # The whole router answers unknown paths: 404, or a redirect without the last slash.
        await (self._router if router is None else router).app(scope, receive, send)


def _key(path: str) -> _Key:
    parts = path.split("/")[1:]
    return len(parts), *(parts[at] for at in _NAMES if at < len(parts))
