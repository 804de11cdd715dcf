"""OpenAPI descriptions of responses that several route families share."""

from collections.abc import Mapping

from caraway_serving import errors

TEXT: dict[str, object] = {"text/plain": {"schema": {"type": "string"}}}

ANY_JSON: dict[str, object] = {"application/json": {"schema": {}}}


def _object(field: str) -> dict[str, object]:
    schema = {
        "type": "object",
        "required": [field],
        "properties": {field: {"type": "string"}},
    }
    return {"application/json": {"schema": schema}}


ERROR = _object("error")
MESSAGE = _object("message")
OF: Mapping[errors.Answer, dict[str, object]] = {
    errors.as_text: TEXT,
    errors.as_error: ERROR,
    errors.as_message: MESSAGE,
}
"""The OpenAPI description of each error format."""
