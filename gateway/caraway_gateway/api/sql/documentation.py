"""The OpenAPI description of the SQL routes, whose bodies cannot be derived."""

from typing import Any

from caraway_serving import shapes
from caraway_serving.negotiation import MEDIA_TYPES


def _text(description: str, **headers: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": description, "content": shapes.TEXT}
    if headers:
        answer["headers"] = {
            name.replace("_", "-"): {"description": meaning, "schema": {"type": "string"}}
            for name, meaning in headers.items()
        }
    return answer


_ROWS = {"type": "array", "items": {"type": "object", "additionalProperties": True}}
_FIELD = {
    "type": "object",
    "required": ["name", "data_type", "nullable", "dict_id", "dict_is_ordered"],
    "properties": {
        "name": {"type": "string"},
        "data_type": {"type": "string"},
        "nullable": {"type": "boolean"},
        "dict_id": {"type": "integer"},
        "dict_is_ordered": {"type": "boolean"},
    },
}
_VERSIONED = {
    "type": "object",
    "required": ["row_count", "schema", "data"],
    "properties": {
        "row_count": {"type": "integer"},
        "schema": {
            "type": "object",
            "required": ["fields"],
            "properties": {"fields": {"type": "array", "items": _FIELD}},
        },
        "data": _ROWS,
        "execution_time_ms": {"type": "integer"},
    },
}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "json": _ROWS,
    "versioned": _VERSIONED,
    "arrow": {"type": "string", "format": "binary"},
}

RUN_SQL: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The rows, streamed in the format that `Accept` selects.",
            "content": {
                media_type: {"schema": _SCHEMAS.get(format_, {"type": "string"})}
                for media_type, format_ in MEDIA_TYPES.items()
            },
            "headers": {
                "Results-Cache-Status": {
                    "description": "Whether the answer came from the results cache.",
                    "schema": {"type": "string", "enum": ["HIT", "MISS", "BYPASS"]},
                },
                "Results-Cache-Scope": {
                    "description": "The scope in which the cached answer is shared.",
                    "schema": {"type": "string", "enum": ["shared", "user"]},
                },
                "X-Query-Id": {
                    "description": "The id under which the statement can be cancelled.",
                    "schema": {"type": "string", "format": "uuid"},
                },
            },
        },
        400: _text("The statement, a parameter or the body is invalid; the text says what to do."),
        403: _text("The statement writes, but the key or the dataset is read-only."),
        406: _text("The rows cannot be encoded in an accepted format."),
        408: _text("The request body stopped arriving."),
        413: _text("The request body is too large."),
        415: _text(
            "The Content-Encoding is not supported.", Accept_Encoding="The supported encodings."
        ),
        429: _text("Too many statements wait, or there are too many requests."),
        499: _text("The statement was cancelled."),
        500: _text("A dataset or the engine failed."),
        503: _text("The runtime is starting or stopping, or has no memory for the body."),
        504: _text("The statement did not finish in time."),
        507: _text("The disk for rows that do not fit in memory is full."),
    },
    "openapi_extra": {
        "parameters": [
            {
                "name": "Accept",
                "in": "header",
                "required": False,
                "description": "The format of the rows; q-values are honoured.",
                "schema": {"type": "string", "default": "application/json"},
            },
            {
                "name": "Cache-Control",
                "in": "header",
                "required": False,
                "description": "`no-cache` bypasses the results cache.",
                "schema": {"type": "string"},
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "text/plain": {"schema": {"type": "string", "examples": ["SELECT 1"]}},
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["sql"],
                        "additionalProperties": False,
                        "properties": {
                            "sql": {"type": "string"},
                            "parameters": {
                                "description": "Values by name, or by position.",
                                "anyOf": [
                                    {"type": "object", "additionalProperties": True},
                                    {"type": "array", "items": {}},
                                    {"type": "null"},
                                ],
                            },
                        },
                        "examples": [
                            {"sql": "SELECT :a + 1 AS b", "parameters": {"a": 41}},
                        ],
                    }
                },
            },
        },
    },
}

_QUERY = {
    "type": "object",
    "required": ["query_id", "protocol", "sql_preview", "started_at_ms"],
    "properties": {
        "query_id": {"type": "string", "format": "uuid"},
        "protocol": {"type": "string", "enum": ["http", "flight", "flightsql", "internal"]},
        "sql_preview": {"type": "string"},
        "started_at_ms": {"type": "integer"},
    },
}

LIST_ACTIVE: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The caller's running statements, oldest first.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["queries", "total_count"],
                        "properties": {
                            "queries": {"type": "array", "items": _QUERY},
                            "total_count": {"type": "integer"},
                        },
                    }
                }
            },
        },
        403: {"description": "The key is read-only.", "content": shapes.ERROR},
    }
}

CANCEL: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The statement is being stopped.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["query_id", "status"],
                        "properties": {
                            "query_id": {"type": "string"},
                            "status": {"type": "string", "const": "cancelled"},
                        },
                    }
                }
            },
        },
        400: {"description": "Not a query id.", "content": shapes.ERROR},
        403: {"description": "The key is read-only.", "content": shapes.ERROR},
        404: {
            "description": "No such statement is running.",
            "content": shapes.ERROR,
        },
    }
}

_COUNT: dict[str, Any] = {"type": "integer"}
_TIME: dict[str, Any] = {"type": ["number", "null"], "description": "Milliseconds since 1970."}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def _object(**properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "required": list(properties), "properties": properties}


_STAGE = _object(
    name={"type": "string"},
    note={"type": "string", "description": "What its rows are."},
    state={"type": "string", "enum": ["waiting", "running", "done"]},
    reads={**_TEXTS, "description": "The stages whose rows it reads."},
    tables={**_TEXTS, "description": "The tables whose rows it reads."},
    tasks_done=_COUNT,
    tasks_total=_COUNT,
    rows=_COUNT,
    bytes=_COUNT,
    began_at_ms=_TIME,
    ended_at_ms=_TIME,
    executors={
        "type": "array",
        "description": "Its completed tasks by executor; null is the scheduler.",
        "items": _object(
            executor_id={"type": ["string", "null"]},
            tasks=_COUNT,
            rows=_COUNT,
            bytes=_COUNT,
            elapsed_ms={"type": "number"},
        ),
    },
)
_STAGES = _object(query_id={"type": "string"}, stages={"type": "array", "items": _STAGE})

STAGES: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The stages as planned so far, the last one last. With `Accept: "
            "text/event-stream`: an event `stages` for each change, and `end`.",
            "content": {
                "application/json": {"schema": _STAGES},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        },
        404: {
            "description": "No such statement or job of the caller runs here.",
            "content": shapes.ERROR,
        },
        429: {"description": "The caller follows too many.", "content": shapes.ERROR},
        500: {"description": "The state store failed.", "content": shapes.ERROR},
        503: {"description": "The runtime is starting or stopping.", "content": shapes.ERROR},
    }
}
