"""The OpenAPI description of responses."""

from typing import Any

from caraway_gateway.api.chat.documentation import FAILURES, error

_REQUEST = {
    "type": "object",
    "required": ["model", "input"],
    "additionalProperties": True,
    "properties": {
        "model": {"type": "string", "description": "A model of the manifest."},
        "input": {"description": "A text, or a list of items."},
        "instructions": {"type": "string"},
        "previous_response_id": {
            "type": "string",
            "description": "A stored response of the same key to go on from.",
        },
        "store": {"type": "boolean", "description": "Keep the response for 24 h (default true)."},
        "stream": {"type": "boolean"},
        "max_output_tokens": {"type": "integer", "minimum": 1},
        "tools": {"type": "array", "items": {"type": "object"}},
    },
}
_RESPONSE = {
    "type": "object",
    "required": ["id", "object", "created_at", "status", "model", "output", "usage"],
    "properties": {
        "id": {"type": "string"},
        "object": {"type": "string", "const": "response"},
        "created_at": {"type": "integer"},
        "status": {
            "type": "string",
            "enum": ["completed", "incomplete", "failed", "in_progress"],
        },
        "model": {"type": "string"},
        "output": {"type": "array", "items": {"type": "object"}},
        "usage": {"type": ["object", "null"]},
    },
}
_BODY = {"application/json": {"schema": _RESPONSE}}
_NONE = error("There is no such stored response of this key.")
CREATE: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The response, or with `stream` its events, which end with "
            "`response.completed`, `response.incomplete` or `response.failed`.",
            "content": {**_BODY, "text/event-stream": {"schema": {"type": "string"}}},
        },
        **FAILURES,
        507: error("The state store is full."),
    },
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}
    },
}
_STATE = {503: FAILURES[503], 507: error("The state store is full.")}
GET: dict[str, Any] = {
    "responses": {
        200: {"description": "The response.", "content": _BODY},
        404: _NONE,
        **_STATE,
    }
}
DELETE: dict[str, Any] = {
    "responses": {
        200: {
            "description": "It is deleted.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        404: _NONE,
        **_STATE,
    }
}
