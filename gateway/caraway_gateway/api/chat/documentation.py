"""The OpenAPI description of chats, whose bodies pass through to providers."""

from typing import Any

_ERROR = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {
                    "type": "object",
                    "required": ["message", "type", "param", "code"],
                    "properties": {
                        "message": {"type": "string"},
                        "type": {"type": "string"},
                        "param": {"type": ["string", "null"]},
                        "code": {"type": ["string", "null"]},
                    },
                }
            },
        }
    }
}
_PLAIN_ERROR = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "string"}},
        }
    }
}
_EITHER = {
    "application/json": {
        "schema": {
            "anyOf": [
                _ERROR["application/json"]["schema"],
                _PLAIN_ERROR["application/json"]["schema"],
            ]
        }
    }
}
_USAGE = {
    "type": ["object", "null"],
    "properties": {
        "prompt_tokens": {"type": "integer"},
        "completion_tokens": {"type": "integer"},
        "total_tokens": {"type": "integer"},
        "completion_tokens_details": {"type": ["object", "null"]},
    },
}
_COMPLETION = {
    "type": "object",
    "required": ["id", "object", "created", "model", "choices"],
    "properties": {
        "id": {"type": "string"},
        "object": {"type": "string", "const": "chat.completion"},
        "created": {"type": "integer"},
        "model": {"type": "string"},
        "system_fingerprint": {"type": ["string", "null"]},
        "choices": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["index", "message", "finish_reason"],
                "properties": {
                    "index": {"type": "integer"},
                    "message": {"type": "object"},
                    "logprobs": {"type": ["object", "null"]},
                    "finish_reason": {"type": "string"},
                },
            },
        },
        "usage": _USAGE,
    },
}
_REQUEST = {
    "type": "object",
    "required": ["model", "messages"],
    "additionalProperties": True,
    "properties": {
        "model": {"type": "string", "description": "A model of the manifest."},
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": 500,
            "items": {
                "type": "object",
                "required": ["role"],
                "properties": {
                    "role": {
                        "type": "string",
                        "enum": ["system", "developer", "user", "assistant", "tool", "function"],
                    },
                    "content": {"description": "A text, or a list of parts."},
                },
            },
        },
        "stream": {"type": "boolean"},
        "stream_options": {
            "type": "object",
            "properties": {"include_usage": {"type": "boolean"}},
        },
    },
    "description": "All fields of the OpenAI chat wire pass through to the provider.",
}


def error(description: str, content: dict[str, Any] = _ERROR) -> dict[str, object]:
    """Return the description of an error of a model route."""
    return {"description": description, "content": content}


FAILURES: dict[int | str, dict[str, Any]] = {
    400: error("The request is wrong, or too long for the model; `param` names the field."),
    401: error("The provider refused the key of the manifest, or the request has no key.", _ERROR),
    402: error("The quota of the provider or the budget of the manifest is used up."),
    404: {"description": "The manifest has no such model; no body."},
    408: error("The request body stopped arriving."),
    413: error("The request body is too large."),
    415: error("The Content-Encoding is not supported."),
    429: error("The provider or the manifest limits the rate.", _EITHER),
    499: {"description": "The client went away."},
    500: error("The provider failed, or its answer was not complete.", _PLAIN_ERROR),
    503: error("The model is loading, or its provider is away.", _EITHER),
    504: error("The provider did not answer in time.", _EITHER),
}
CHAT: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The answer, or with `stream` its chunks as server-sent events, which "
            "end with `[DONE]`. A failure in the middle is an event `error`.",
            "content": {
                "application/json": {"schema": _COMPLETION},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        },
        **FAILURES,
    },
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}
    },
}
