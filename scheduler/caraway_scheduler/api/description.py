"""Completes the API's description with what holds for every route: keys, errors, the trace id."""

from typing import Any

from caraway_scheduler.api import shapes
from caraway_scheduler.api.failures import is_json_error

_TRACE = {"description": "The trace that this answer belongs to.", "schema": {"type": "string"}}
_OPEN = ("/health",)


def complete(document: dict[str, Any], *, secured: bool) -> dict[str, Any]:
    """Return the derived description with everything that cannot be derived."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(
        ApiKey={"type": "apiKey", "in": "header", "name": "X-API-Key"},
        Bearer={"type": "http", "scheme": "bearer"},
    )
    if secured:
        document["security"] = [{"ApiKey": []}, {"Bearer": []}]
    for name in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(name, None)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete_operation(path, operation, secured)
    return document


def _complete_operation(path: str, operation: dict[str, Any], secured: bool) -> None:
    responses = operation["responses"]
    error = shapes.ERROR if is_json_error(path) else shapes.TEXT
    if _is_derived(responses.get("422", {})):
        del responses["422"]
        # Ours is 400, in the shape of the route: see `failures`.
        responses.setdefault("400", {"description": "A parameter is wrong.", "content": error})
    if path not in _OPEN:
        responses.setdefault("500", {"description": "Internal error.", "content": error})
        responses.setdefault("503", {"description": "Shutting down.", "content": shapes.TEXT})
        if secured:
            responses["401"] = {"description": "No key, or an unknown one.", "content": shapes.TEXT}
    else:
        operation["security"] = []
    for response in responses.values():
        response.setdefault("headers", {}).setdefault("X-Trace-Id", _TRACE)


def _is_derived(response: dict[str, Any]) -> bool:
    """Whether the framework added it; where a route has a 422 of its own, it says so itself."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith("/HTTPValidationError")
