"""The application: routes, gates and the description of the API."""

from collections.abc import Sequence
from functools import cache, partial

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_management.api import (
    activity,
    api_keys,
    credentials,
    deployments,
    description,
    documents,
    failures,
    gates,
    health,
    idempotency,
    joining,
    limits,
    members,
    metrics,
    monitors,
    organizations,
    places,
    plans,
    projects,
    queries,
    rates,
    reactions,
    route_index,
    secrets,
    tally,
)
from caraway_management.api.access import INSTANCE
from caraway_management.api.gates import ForwardedGate, JsonGate
from caraway_management.api.mcp.endpoint import McpGate, ServedRoutes
from caraway_management.passthrough.passing import Passthrough
from caraway_management.services import Services
from caraway_serving import console


class Application:
    """The routes, with the parts of one instance. `state` is what routes find in a request."""

    def __init__(self, services: Services, routes: FastAPI | None = None) -> None:
        """Take the parts, and the routes in place of those of the service."""
        self.routes = routes or declare()
        self.state = State()
        self.state.services = services
        self.state.passthrough = Passthrough()
        self.state.tally = tally.Tally()
        inner = gates.RecordGate(JsonGate(self.routes), services)
        repeated = idempotency.IdempotencyGate(inner, services)
        # Calls of tools do not count as requests of their own.
        called = gates.RequestIdGate(tally.TallyGate(repeated, self.state.tally))
        served = ServedRoutes(self._within(called), self.openapi)
        self._tools = McpGate(repeated, services, served)
        limited = rates.RateGate(gates.BodyGate(self._tools), services.rates)
        counted = gates.RequestIdGate(tally.TallyGate(limited, self.state.tally))
        within = self._within(ForwardedGate(counted, services.trusted_proxies))
        # The page and its files have no data: no gate counts or records them.
        self._app = Router(console.routes("management.html"), default=within)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def _within(self, app: ASGIApp) -> ASGIApp:
        """Return an application that gives requests the parts of this instance."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            scope[INSTANCE] = self.state
            await (app if scope["type"] == "http" else self.routes)(scope, receive, send)

        return serve

    async def aclose(self) -> None:
        """End what requests have begun, once no more come: the MCP server and the connections."""
        await self._tools.aclose()
        await self.state.passthrough.aclose()

    def openapi(self) -> dict[str, object]:
        """Return the description of the API."""
        return description.describe(self.routes)


def build(services: Services) -> Application:
    """Build the application of one instance."""
    return Application(services)


@cache
def declare() -> FastAPI:
    """Declare the routes, once in a process."""
    return declare_with(_routers())


def declare_with(routers: Sequence[APIRouter]) -> FastAPI:
    """Declare the routes of some routers."""
    app = FastAPI(
        title="Caraway management API",
        version="1",
        description="Organizations, projects, deployments, secrets and limits.",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        # The Location would have the host that the request names.
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.openapi = partial(description.describe, app)  # type: ignore[method-assign]
    failures.install(app)
    every = APIRouter()
    for router in routers:
        every.include_router(router)
    route_index.add_routes(app, every)
    return app


def _routers() -> list[APIRouter]:
    return [
        *credentials.ROUTERS,
        activity.router,
        both_names(deployments.router),
        documents.router,
        health.router,
        joining.router,
        limits.router,
        members.router,
        metrics.router,
        organizations.router,
        monitors.of_clusters,
        places.router,
        plans.router,
        queries.router,
        secrets.router,
        *map(both_names, [monitors.router, reactions.router, *projects.ROUTERS]),
        *map(both_names, [api_keys.router, metrics.of_projects]),
        *map(both_names, [queries.of_projects, secrets.of_projects]),
    ]


def both_names(router: APIRouter) -> APIRouter:
    """Return routes under `/v1/projects`, and again under `/v1/apps`: one resource."""
    both = APIRouter()
    both.include_router(router, prefix="/v1/projects")
    both.include_router(router, prefix="/v1/apps")
    return both


def _operation_id(route: APIRoute) -> str:
    return f"{route.name}_of_apps" if route.path.startswith("/v1/apps") else route.name
