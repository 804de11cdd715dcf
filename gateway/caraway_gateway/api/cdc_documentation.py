"""The OpenAPI description of the change events route."""

from typing import Any

from caraway_plugins.changes.decoding import CONTENT_TYPES
from caraway_serving import shapes

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_ROW: Schema = {"type": ["object", "null"], "additionalProperties": True}
_EVENT: Schema = {
    "type": ["object", "null"],
    "description": "A Debezium envelope, alone or as the `payload` next to its `schema`.",
    "properties": {
        "before": _ROW,
        "after": _ROW,
        "source": _ROW,
        "op": {"type": "string", "enum": ["c", "u", "d", "r", "t"]},
    },
    "additionalProperties": True,
}
_EVENTS: Schema = {"oneOf": [_EVENT, {"type": "array", "items": _EVENT}]}
_BYTES: Schema = {"type": "string", "format": "binary"}


def _schema(name: str, form: str) -> Schema:
    if form == "avro":
        return _BYTES
    return _EVENTS if name.endswith("json") and "nd" not in name else _TEXT


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _refused(description: str) -> Schema:
    return {"description": description, "content": shapes.MESSAGE}


def _header(name: str, description: str, **schema: object) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {**_TEXT, **schema},
    }


INGEST: Schema = {
    "responses": {
        200: {
            "description": "The events are applied: durable, and visible to every later query.",
            "content": {
                "application/json": {"schema": _object(applied={"type": "integer"}, dataset=_TEXT)}
            },
        },
        400: _refused(
            "The content type is not supported, an event is malformed or does not fit the dataset, "
            "or applying failed; nothing is applied."
        ),
        403: _refused("The key is read-only."),
        404: _refused("The dataset does not exist, or accepts no changes."),
        408: _refused("The body stopped arriving."),
        413: _refused("The body is too large."),
        415: _refused("The Content-Encoding is not supported."),
        503: _refused(
            "The dataset is being reloaded, the schema registry does not respond, or the runtime "
            "is starting or stopping; send the events again.",
        ),
        507: _refused("A disk or the state store is full; send the events again."),
        504: _refused(
            "The events were not applied in 60 s, but may be applied later; send them again."
        ),
    },
    "openapi_extra": {
        "parameters": [
            _header(
                "Idempotency-Key",
                "Events that were applied with the same key are not applied again.",
                minLength=1,
                maxLength=255,
                pattern="^[!-~]+$",
            ),
            _header("X-Avro-Schema", "The schema of bare Avro records, as JSON."),
        ],
        "requestBody": {
            "required": True,
            "content": {
                name: {"schema": _schema(name, form)} for name, form in CONTENT_TYPES.items()
            },
        },
    },
}
