"""The two ASGI applications: the API, and the metrics port's page and probes."""

import functools
from collections.abc import Callable
from importlib import resources
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from caraway_gateway.api import (
    acceleration,
    catalogs,
    cdc,
    cluster,
    datasets,
    description,
    details,
    embeddings,
    functions,
    health,
    mcp,
    models,
    packages,
    pods,
    probes,
    snapshots,
    status,
    tools,
    verdicts,
)
from caraway_gateway.api.chat import routes as chat
from caraway_gateway.api.error_shapes import SHAPES
from caraway_gateway.api.iceberg import access_routes as iceberg_access
from caraway_gateway.api.iceberg import config as iceberg_config
from caraway_gateway.api.iceberg import errors as iceberg
from caraway_gateway.api.iceberg import plan_routes as iceberg_plans
from caraway_gateway.api.iceberg import routes as iceberg_routes
from caraway_gateway.api.iceberg import spec_routes as namespaces
from caraway_gateway.api.iceberg import view_routes as iceberg_views
from caraway_gateway.api.internal import routes as internal
from caraway_gateway.api.messages import routes as messages
from caraway_gateway.api.nsql import routes as nsql
from caraway_gateway.api.queries import routes as queries
from caraway_gateway.api.responses import routes as responses
from caraway_gateway.api.search import routes as search
from caraway_gateway.api.sql import routes as sql
from caraway_gateway.api.sql import stages
from caraway_gateway.services import Services
from caraway_serving import console, failures
from caraway_serving.gates.access import AccessGate
from caraway_serving.gates.limiting import BodyGate, LimitGate, StopGate
from caraway_serving.gates.observing import ObservationGate
from caraway_serving.room import BodyMemory
from caraway_serving.routes import redirect_slashes

API_VERSION = "2.0.0-unstable"
ROUTERS: tuple[APIRouter, ...] = (
    sql.router,  # First: routers are asked in turn, and this one is asked most.
    stages.router,
    queries.router,
    search.router,
    chat.router,
    responses.router,
    messages.router,
    health.router,
    datasets.router,
    details.router,
    acceleration.router,
    snapshots.router,
    cdc.router,
    catalogs.router,
    models.router,
    functions.router,
    embeddings.router,
    pods.router,
    cluster.router,
    status.router,
    tools.router,
    mcp.router,
    nsql.router,
    verdicts.router,
    packages.router,
    iceberg_config.router,
    namespaces.router,
    iceberg_views.router,
    iceberg_plans.router,
    iceberg_access.router,
    iceberg_routes.router,  # Last of its family: it refuses what is left of its prefix.
)
_DESCRIPTION = (
    "One endpoint for SQL over a company's data. Where keys are configured, every `/v1` route "
    "takes one as `X-API-Key` or `Authorization: Bearer`."
)
_CORS_METHODS = ["GET", "POST", "PATCH", "DELETE", "OPTIONS"]
_CORS_HEADERS = ["accept", "content-type", "authorization", "x-api-key", "cache-control",
                 "idempotency-key", "mcp-session-id", "mcp-protocol-version", "anthropic-version",
                 "anthropic-beta"]  # fmt: skip
_CORS_EXPOSED = ["results-cache-status", "results-cache-scope", "search-results-cache-status",
                 "search-results-cache-scope", "x-query-id", "x-trace-id",
                 "retry-after"]  # fmt: skip


def build_api(
    services: Services, cors_origins: list[str] | None = None, *, has_console: bool = True
) -> ASGIApp:
    """Return the application of the API's port; `cors_origins` None leaves CORS off."""
    api = build_fastapi(services)
    if has_console:
        api.router.routes.extend(console.routes())
    app: ASGIApp = BodyGate(
        api, services.max_body_bytes, BodyMemory(services.body_memory_bytes), SHAPES
    )
    app = LimitGate(app, services.limits, services.tallies, SHAPES)
    app = AccessGate(app, services.keyring, dict.fromkeys(SHAPES.families, iceberg.unauthorized()))
    app = StopGate(app, services, SHAPES)
    if cors_origins is not None:
        app = CORSMiddleware(
            app,
            allow_origins=cors_origins,
            allow_methods=_CORS_METHODS,
            allow_headers=_CORS_HEADERS,
            expose_headers=_CORS_EXPOSED,
        )
    return ObservationGate(app, services.tallies)


def build_fastapi(services: Services) -> FastAPI:
    """Return the routes without the gates in front of them."""
    api = _fastapi(services, title="Caraway runtime", description=_DESCRIPTION)
    api.state.services = services
    api.state.routes = [route for router in ROUTERS for route in router.routes]
    # An included router is asked twice for each request: whether it has a route, and for which.
    api.router.routes.extend(api.state.routes)
    redirect_slashes(api.router)
    _add_documentation(api, secured=services.keyring is not None)
    return api


def build_metrics(services: Services, prefix: str = "") -> ASGIApp:
    """Return the application of the metrics port: no keys, so that probes need none.

    What operators of a cluster do there needs the cluster's token.
    """
    app = _fastapi(
        services, title="Caraway metrics", description="Metrics and probes.", openapi_url=None
    )
    app.state.services = services
    app.include_router(probes.router)
    if services.operating is not None:
        app.include_router(internal.router)
    add_metrics(app, services, prefix)

    return StopGate(app, services, SHAPES)


def add_metrics(app: FastAPI, services: Services, prefix: str) -> None:
    """Serve `/metrics`; what renders it is imported by the first scrape, not by the start."""

    @functools.cache
    def page() -> Callable[[], Response]:
        from caraway_gateway.metrics import rendering as metrics

        registry = metrics.registry(services, prefix)
        return lambda: Response(metrics.render(registry), media_type=metrics.CONTENT_TYPE)

    @app.get("/metrics")
    async def scrape() -> Response:
        return page()()


def _fastapi(services: Services, **settings: Any) -> FastAPI:
    app = FastAPI(
        version=API_VERSION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        **settings,
    )
    failures.install(app, SHAPES, lambda: services.is_stopping)
    return app


def _add_documentation(api: FastAPI, secured: bool) -> None:
    """Serve the API's page from files of a package: it works without a way to the internet.

    Its addresses are relative, as a proxy may serve the runtime below a prefix.
    """
    folder = resources.files("fastapi_offline") / "static"
    api.mount("/docs/assets", StaticFiles(directory=str(folder)), name="assets")

    @api.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(
            openapi_url="openapi.json",
            title="Caraway API",
            swagger_js_url="docs/assets/swagger-ui-bundle.js",
            swagger_css_url="docs/assets/swagger-ui.css",
            swagger_favicon_url="docs/assets/favicon.png",
        )

    derive = api.openapi
    api.openapi = lambda: description.complete(derive(), secured=secured)  # type: ignore[method-assign] # the documented way to extend it
