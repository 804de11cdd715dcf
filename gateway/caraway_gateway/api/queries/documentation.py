"""The OpenAPI description of the query routes, whose bodies cannot be derived."""

from typing import Any, get_args

from caraway_core.errors.outcomes import JobCode
from caraway_scheduler.jobs.model import JobStatus
from caraway_serving import shapes
from caraway_serving.negotiation import STORED_TYPES

Schema = dict[str, Any]


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _answer(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _error(description: str) -> Schema:
    return {"description": description, "content": shapes.ERROR}


_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TIME: Schema = {"type": "string", "format": "date-time"}
_STATUS: Schema = {"type": "string", "enum": list(get_args(JobStatus))}
_ERROR = _object(
    ("error_code", "message"),
    error_code={"type": "string", "enum": list(get_args(JobCode))},
    message=_TEXT,
)
_STATE: Schema = {"query_id": _TEXT, "status": _STATUS, "error": _ERROR}
_COLUMN = _object(
    ("name", "type_name", "nullable", "position"),
    name=_TEXT,
    type_name={"type": "string", "examples": ["Int64", 'Timestamp(Microsecond, Some("UTC"))']},
    nullable={"type": "boolean"},
    position=_COUNT,
)
_MANIFEST = _object(
    ("format", "schema", "total_row_count", "total_chunk_count"),
    format={"type": "string", "const": "ARROW_IPC"},
    schema=_object(("column_count", "columns"), column_count=_COUNT, columns=_array(_COLUMN)),
    total_row_count=_COUNT,
    total_chunk_count=_COUNT,
)
_CHUNK = _object(
    ("chunk_index", "row_offset", "row_count", "data_array"),
    chunk_index=_COUNT,
    row_offset=_COUNT,
    row_count=_COUNT,
    next_chunk_index={**_COUNT, "description": "Omitted on the last chunk."},
    next_chunk_url=_TEXT,
    data_array=_array({"type": "object", "additionalProperties": True}),
)
_QUERY = _object(
    ("query_id", "status", "created_at"),
    **_STATE,
    manifest=_MANIFEST,
    result={**_CHUNK, "description": "The first chunk."},
    created_at=_TIME,
    started_at=_TIME,
    completed_at=_TIME,
    expires_at=_TIME,
)
_PROGRESS = _object(
    ("stages_done", "stages_total", "tasks_done", "tasks_total", "rows", "bytes"),
    stages_done=_COUNT,
    stages_total=_COUNT,
    tasks_done=_COUNT,
    tasks_total=_COUNT,
    rows=_COUNT,
    bytes=_COUNT,
)
_SUBMISSION: Schema = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string", "examples": ["SELECT 1"]},
        "parameters": {
            "description": "Values by name, or by position.",
            "anyOf": [
                {"type": "object", "additionalProperties": True},
                {"type": "array", "items": {}},
                {"type": "null"},
            ],
        },
        "timeout_seconds": {
            "description": "The query fails with TIMEOUT after this many seconds; default: none.",
            "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}],
        },
        "maximum_size": {
            "description": "The query fails if its stored answer exceeds this many bytes.",
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
        },
    },
}
_WITH_STATUS: Schema = {
    "application/json": {"schema": _object(("error",), error=_TEXT, status=_STATUS)}
}
_COMMON: dict[int | str, object] = {
    503: {
        "description": "The state store is unavailable, or the runtime starts or stops.",
        "content": shapes.ERROR,
    },
    507: {
        "description": "A disk or the state store is full.",
        "content": shapes.ERROR,
        "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": _TEXT}},
    },
}
_UNKNOWN: dict[int | str, object] = {404: _error("The caller has no such query."), **_COMMON}
_ACCEPT: Schema = {
    "name": "Accept",
    "in": "header",
    "required": False,
    "description": "The format of the rows; q-values are honoured.",
    "schema": {"type": "string", "default": "application/json"},
}
_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Repeated requests with the same key return the same query.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def _rows(description: str, unfinished: int, error: Schema) -> Schema:
    def refused(reason: str) -> Schema:
        return {"description": reason, "content": error}

    forms = {
        name: {"schema": _CHUNK if form == "json" else {"type": "string", "format": "binary"}}
        for name, form in STORED_TYPES.items()
    }
    return {
        "responses": {
            200: {"description": description, "content": forms},
            400: _error("A parameter is invalid."),
            404: refused("The caller has no such query, or the query has no such chunk."),
            406: _error("These rows cannot be encoded in an accepted format."),
            410: refused("The query was cancelled, or its rows have expired."),
            unfinished: refused("The query has not ended."),
            500: refused("The query failed, or its rows cannot be read."),
            **_COMMON,
        },
        "openapi_extra": {"parameters": [_ACCEPT]},
    }


SUBMIT: Schema = {
    "status_code": 202,
    "responses": {
        202: _answer(
            "The query is stored durably and runs as soon as possible.",
            _object(
                ("query_id", "status", "status_url", "results_url"),
                **_STATE,
                status_url=_TEXT,
                results_url=_TEXT,
            ),
        ),
        400: _error("The body is not JSON, the statement is empty, or a header is invalid."),
        408: _error("The request body stopped arriving."),
        413: _error("The request body is too large."),
        415: _error("The Content-Type is not JSON, or the Content-Encoding is not supported."),
        422: _error("A field is invalid, or the Idempotency-Key was used for another query."),
        429: _error("Too many queries wait, or there are too many requests."),
        **_COMMON,
    },
    "openapi_extra": {
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _SUBMISSION}},
        },
    },
}
LIST: Schema = {
    "responses": {
        200: _answer(
            "The caller's queries, newest first.",
            _object(
                ("queries", "total_count"),
                queries=_array(
                    _object(
                        ("query_id", "status", "sql_preview", "created_at"),
                        query_id=_TEXT,
                        status=_STATUS,
                        sql_preview={"type": "string", "maxLength": 100},
                        created_at=_TIME,
                    )
                ),
                total_count={**_COUNT, "description": "The number of queries in this list."},
            ),
        ),
        **_COMMON,
    }
}
DESCRIBE: Schema = {
    "responses": {200: _answer("The query.", _QUERY), **_UNKNOWN},
}
STATUS: Schema = {
    "responses": {
        200: _answer(
            "The state of the query, with its progress while it runs, if known.",
            _object(("query_id", "status"), **_STATE, progress=_PROGRESS, waits_for=_TEXT),
        ),
        **_UNKNOWN,
    }
}
RESULTS = _rows(
    "One chunk as JSON. In other formats, the whole answer or the chunk `partition`.",
    425,
    _WITH_STATUS,
)
CHUNK = _rows("One chunk.", 409, shapes.ERROR)
CANCEL: Schema = {
    "responses": {
        200: _answer("The query after the request; one that had ended is unchanged.", _QUERY),
        403: _error("The key is read-only."),
        **_UNKNOWN,
    }
}
