"""The application: routes, gates and the description of the API."""

from functools import partial

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse

from caraway_management.api import (
    activity,
    api_keys,
    credentials,
    deployments,
    description,
    failures,
    gates,
    health,
    idempotency,
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
    secrets,
    tally,
)
from caraway_management.api.mcp.endpoint import McpGate, Routes
from caraway_management.passthrough.passing import Passthrough
from caraway_management.services import Services


def build(services: Services) -> FastAPI:
    """Build the application of one instance."""
    app = FastAPI(
        title="Caraway management API",
        version="1",
        description="Organizations, projects, deployments, secrets and limits.",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        default_response_class=JSONResponse,
    )
    app.state.services = services
    app.state.passthrough = Passthrough()
    app.state.tally = tally.Tally()
    app.openapi = partial(description.describe, app)  # type: ignore[method-assign]
    failures.install(app)
    for router in _routers():
        app.include_router(router)
    app.add_middleware(gates.RecordGate, services=services)
    app.add_middleware(idempotency.IdempotencyGate, services=services)
    app.add_middleware(McpGate, services=services, routes=Routes(app))
    app.add_middleware(gates.BodyGate)
    app.add_middleware(rates.RateGate, rates=services.rates)
    app.add_middleware(tally.TallyGate, tally=app.state.tally)
    app.add_middleware(gates.RequestIdGate)
    return app


def _routers() -> list[APIRouter]:
    return [
        *credentials.ROUTERS,
        activity.router,
        both_names(deployments.router),
        health.router,
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
