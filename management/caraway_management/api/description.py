"""The OpenAPI description: what FastAPI makes of the routes, with scopes and errors."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

_BEARER = "bearer"
_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "What failed, and what to do."},
        "code": {"type": "string", "description": "A stable code, where there is one."},
        "details": {
            "type": "object",
            "properties": {
                "fieldErrors": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                },
                "formErrors": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}
_REFERENCE = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
_ERRORS: dict[str, Any] = {
    "4XX": {"description": "The request is refused.", "content": _REFERENCE},
    "5XX": {"description": "The service failed, or is away.", "content": _REFERENCE},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application; it is made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            openapi_version=app.openapi_version,
            description=app.description,
            routes=app.routes,
        )
        components = document.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Error"] = _ERROR
        components["securitySchemes"] = {_BEARER: {"type": "http", "scheme": "bearer"}}
        for path, method, route in declared_routes(app):
            _complete(document["paths"][path][method.lower()], route)
        app.openapi_schema = document
    return app.openapi_schema


def declared_routes(app: FastAPI) -> Iterator[tuple[str, str, APIRoute]]:
    """Return path, method and route of all that the description shows."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                yield context.path_format or route.path_format, method, route


def needs_of(route: APIRoute) -> tuple[bool, str | None]:
    """Return whether a route needs a credential, and the scope that it needs."""
    for call in _calls(route.dependant):
        if hasattr(call, "needs_scope"):
            return True, call.needs_scope
    return False, None


def org_of(route: APIRoute) -> str | None:
    """Return where a route takes its organization from: `header`, `path`, or None."""
    for call in _calls(route.dependant):
        if hasattr(call, "needs_org"):
            within: str | None = call.needs_org
            return within
    return None


def _calls(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    responses = operation.setdefault("responses", {})
    # Wrong parameters and bodies are answered with 400.
    responses.pop("422", None)
    for status, answer in _ERRORS.items():
        responses.setdefault(status, answer)
    needs_credential, scope = needs_of(route)
    if needs_credential:
        operation["security"] = [{_BEARER: []}]
    if scope is not None:
        operation["x-scope"] = scope
