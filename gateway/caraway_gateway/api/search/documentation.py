"""The OpenAPI description of the search route, whose bodies cannot be derived."""

from typing import Any

from caraway_core.sqltext.searching import MOST_HITS
from caraway_serving import shapes

_STRINGS = {"type": "array", "items": {"type": "string"}}
_OBJECT = {"type": "object", "additionalProperties": True}
_RESULT = {
    "type": "object",
    "required": ["dataset", "_score"],
    "properties": {
        "matches": {
            "type": "object",
            "description": "By searched column, the texts that were found.",
            "additionalProperties": _STRINGS,
        },
        "data": {**_OBJECT, "description": "The additional columns."},
        "primary_key": {**_OBJECT, "description": "The columns that identify the row."},
        "dataset": {"type": "string"},
        "_score": {"type": "number", "description": "A greater score is a better match."},
    },
}


def _error(description: str) -> dict[str, object]:
    return {"description": description, "content": shapes.ERROR}


SEARCH: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The best rows of all datasets, best first.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["results", "duration_ms"],
                        "properties": {
                            "results": {"type": "array", "items": _RESULT},
                            "duration_ms": {"type": "integer"},
                        },
                    }
                }
            },
            "headers": {
                "Search-Results-Cache-Status": {
                    "description": "Whether the answer came from the search results cache.",
                    "schema": {"type": "string", "enum": ["HIT", "MISS", "BYPASS"]},
                },
                "Search-Results-Cache-Scope": {
                    "description": "The scope in which the cached answer is shared.",
                    "schema": {"type": "string", "enum": ["shared", "user"]},
                },
            },
        },
        400: _error("A field, a dataset or the predicate is invalid; the text says what to do."),
        403: _error("The predicate reads what the key may not read."),
        408: _error("The request body stopped arriving."),
        413: _error("The request body is too large."),
        415: _error("The Content-Encoding is not supported."),
        429: _error("Too many statements wait, or there are too many requests."),
        499: _error("The search was cancelled."),
        500: _error("A dataset, a model or the engine failed."),
        503: _error("A dataset or a model is loading or away; try again after `Retry-After`."),
        504: _error("The search did not finish in time."),
        507: _error("The disk for rows that do not fit in memory is full."),
    },
    "openapi_extra": {
        "parameters": [
            {
                "name": "Cache-Control",
                "in": "header",
                "required": False,
                "description": "`no-cache` bypasses the search results cache.",
                "schema": {"type": "string"},
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["text", "datasets"],
                        "additionalProperties": False,
                        "properties": {
                            "text": {"type": "string", "description": "What to search for."},
                            "datasets": {
                                **_STRINGS,
                                "minItems": 1,
                                "description": "The datasets and views to search.",
                            },
                            "limit": {
                                "type": ["integer", "null"],
                                "minimum": 1,
                                "maximum": MOST_HITS,
                                "default": MOST_HITS,
                                "description": "The most results, of all datasets together.",
                            },
                            "where": {
                                "type": ["string", "null"],
                                "description": "A predicate of SQL: only rows that pass are found.",
                            },
                            "additional_columns": {
                                "type": ["array", "null"],
                                "items": {"type": "string"},
                                "description": "Columns that are returned under `data`.",
                            },
                            "keywords": {
                                "type": ["array", "null"],
                                "items": {"type": "string"},
                                "description": "What full-text search looks for instead of the "
                                "words of `text`.",
                            },
                        },
                        "examples": [
                            {"text": "how to rotate a key", "datasets": ["docs"], "limit": 5}
                        ],
                    }
                }
            },
        },
    },
}
