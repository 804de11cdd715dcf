"""The OpenAPI description of messages."""

from typing import Any

ENVELOPE: dict[str, object] = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["type", "error"],
            "properties": {
                "type": {"type": "string", "const": "error"},
                "error": {
                    "type": "object",
                    "required": ["type", "message"],
                    "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
                },
            },
        }
    }
}
_WORDS = {
    400: "The request is invalid, or asks for what the model cannot do.",
    401: "The provider refused the key of the manifest.",
    402: "The account of the provider, or the limit of the manifest, is used up.",
    404: "There is no such model.",
    408: "The body stopped arriving.",
    413: "The body is too large.",
    415: "The Content-Encoding is not supported.",
    429: "The provider or the manifest limits the rate.",
    500: "The provider failed.",
    503: "The model is loading, or its provider is away.",
    504: "The provider did not answer in time.",
}
_REQUEST = {
    "type": "object",
    "required": ["model", "max_tokens", "messages"],
    "properties": {
        "model": {"type": "string", "description": "A model of the manifest."},
        "max_tokens": {"type": "integer", "minimum": 1},
        "messages": {"type": "array", "items": {"type": "object"}, "minItems": 1},
        "system": {"description": "A text, or a list of text blocks."},
        "stream": {"type": "boolean"},
        "stop_sequences": {"type": "array", "items": {"type": "string"}},
        "temperature": {"type": "number", "minimum": 0},
        "tools": {"type": "array", "items": {"type": "object"}},
        "tool_choice": {"type": "object"},
    },
}
_MESSAGE = {
    "type": "object",
    "required": ["id", "type", "role", "model", "content", "stop_reason", "usage"],
    "properties": {
        "id": {"type": "string"},
        "type": {"type": "string", "const": "message"},
        "role": {"type": "string", "const": "assistant"},
        "model": {"type": "string"},
        "content": {"type": "array", "items": {"type": "object"}},
        "stop_reason": {
            "type": "string",
            "enum": ["end_turn", "max_tokens", "tool_use", "refusal"],
        },
        "stop_sequence": {"type": "null"},
        "usage": {"type": "object"},
    },
}
CREATE: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The message, or with `stream` its events.",
            "content": {
                "application/json": {"schema": _MESSAGE},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        },
        **{status: {"description": words, "content": ENVELOPE} for status, words in _WORDS.items()},
    },
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}
    },
}
