"""The OpenAPI description of `/v1/nsql`."""

from typing import Any

from caraway_serving import shapes

_ROWS = {
    "type": "object",
    "required": ["sql", "schema", "data", "row_count"],
    "properties": {
        "sql": {"type": "string"},
        "schema": {"type": "object"},
        "data": {"type": "array", "items": {"type": "object"}},
        "row_count": {"type": "integer"},
        "execution_time_ms": {"type": "integer"},
    },
}
_QUESTION = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "The question."},
        "model": {
            "type": ["string", "null"],
            "description": "A model of the manifest; not needed if there is one.",
        },
        "stream": {"type": ["boolean", "null"], "description": "Send the answer as one event."},
        "sample_data_enabled": {
            "type": ["boolean", "null"],
            "description": "Tell the model some values of the data.",
        },
        "datasets": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "The only tables that are read; all of them without it.",
        },
        "prompt_cache_key": {"type": ["string", "null"]},
    },
}
_STATUSES = {
    400: "The question is wrong, or names a model or dataset that is not known.",
    402: "The quota of the provider is used up.",
    403: "The statement may not run.",
    406: "No accepted form is supported.",
    408: "The body arrives too slowly.",
    413: "The body is too large.",
    415: "The body has an unsupported encoding.",
    499: "The work was cancelled.",
    500: "The model failed, or wrote no statement that works.",
    504: "The statement took too long.",
    507: "A disk is full.",
}
_FAILURES = {
    status: {"description": told, "content": shapes.TEXT} for status, told in _STATUSES.items()
}
ASK: dict[str, Any] = {
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": _QUESTION}}}
    },
    "responses": {
        200: {
            "description": "The rows, or the statement alone as `application/sql`.",
            "content": {
                "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
                "application/vnd.caraway.nsql.v1+json": {"schema": _ROWS},
                "application/sql": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        },
        **_FAILURES,
    },
}
CONTEXT: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The context, as a page or as one object.",
            "content": {
                "text/markdown": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
            },
        },
        400: _FAILURES[400],
        406: _FAILURES[406],
        499: _FAILURES[499],
    },
}
