"""Completes the OpenAPI description with what applies to every route: keys, errors and headers."""

from typing import Any

from caraway_gateway.api.error_shapes import SHAPES
from caraway_gateway.api.iceberg import errors as iceberg
from caraway_gateway.api.messages.documentation import ENVELOPE
from caraway_gateway.api.messages.errors import envelope
from caraway_serving import shapes

_TRACE = {"description": "The id of the request's trace.", "schema": {"type": "string"}}
_WAIT = {"description": "Seconds to wait before retrying.", "schema": {"type": "string"}}
_OPEN = ("/health",)
_UNLIMITED = ("/health", "/v1/ready")
_RETRIED = ("429", "503")
_SHAPES = {**shapes.OF, envelope: ENVELOPE, iceberg.envelope: iceberg.DOCUMENTED}


def complete(document: dict[str, Any], *, secured: bool) -> dict[str, object]:
    """Add to the generated description everything that cannot be derived from the routes."""
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
    error = _SHAPES[SHAPES.answer_of(path)]
    if _is_derived(responses.get("422", {})):
        del responses["422"]
        # The error handlers answer 400 in the shape of the route instead.
        responses.setdefault("400", {"description": "A parameter is invalid.", "content": error})
    if path not in _OPEN:
        responses.setdefault("500", {"description": "Internal error.", "content": error})
        responses.setdefault("503", {"description": "Starting or stopping.", "content": error})
        if path not in _UNLIMITED:
            responses.setdefault("429", {"description": "Too many requests.", "content": error})
        if secured:
            content = error if SHAPES.answer_of(path) is iceberg.envelope else shapes.TEXT
            responses["401"] = {"description": "No key, or an unknown one.", "content": content}
    else:
        operation["security"] = []
    for status, response in responses.items():
        headers = response.setdefault("headers", {})
        headers.setdefault("X-Trace-Id", _TRACE)
        if status in _RETRIED and path not in _UNLIMITED:
            headers.setdefault("Retry-After", _WAIT)


def _is_derived(response: dict[str, Any]) -> bool:
    """Return whether the framework added this response, rather than the route itself."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith("/HTTPValidationError")
