"""The route that takes what a user thinks of an answer of a model."""

import asyncio
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_core.errors import CarawayError, InvalidRequestError
from caraway_core.loading import registry
from caraway_gateway.api import app_state
from caraway_serving import bodies, errors, parsing, scopes, shapes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Models"])
_MOST_BODY = 256 * 1024
_MOST_TEXT = 32 * 1024
_TEXTS = ("model", "question", "answer", "sql", "comment")
_VERDICTS = ("up", "down")
_TEXT = {"type": ["string", "null"], "maxLength": _MOST_TEXT}
_BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["verdict"],
                    "additionalProperties": False,
                    "properties": {
                        "verdict": {"type": "string", "enum": list(_VERDICTS)},
                        **dict.fromkeys(_TEXTS, _TEXT),
                    },
                }
            }
        },
    }
}
_STATUSES = {
    400: "The body is not a verdict.",
    403: "The key is read-only.",
    408: "The body arrives too slowly.",
    413: "The body is too large.",
    415: "The body has an unsupported encoding.",
    503: "The runtime is starting or stopping, or the disk fails.",
    507: "The disk is full.",
}


@router.post(
    "/v1/verdicts",
    status_code=204,
    openapi_extra=_BODY,
    responses={
        status: {"description": meaning, "content": shapes.ERROR}
        for status, meaning in _STATUSES.items()
    },
)
async def judge(request: Request) -> Response:
    """Keep what a user thinks of an answer, as a line of a file in the data directory."""
    services, principal = app_state.services(request), scopes.principal(request)
    if not principal.may_write:
        message = "keeping verdicts needs a key that ends in :rw"
        return errors.as_error(RefusedRequestError(403, message))
    try:
        body = await bodies.read(request, min(_MOST_BODY, services.max_body_bytes))
        given = await parsing.parsed(request, body, _parsed)
        line = {"at": datetime.now(UTC).isoformat(), "principal": principal.id, **given}
        await asyncio.to_thread(services.verdicts.add, line)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.as_error(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return Response(status_code=204)


def _parsed(body: bytes) -> dict[str, str]:
    document = parsing.json(body, 'send {"verdict": "up", "question": "...", "answer": "..."}')
    if not isinstance(document, dict):
        raise InvalidRequestError("the request body must be a JSON object")
    for name in document:
        if name != "verdict" and name not in _TEXTS:
            raise InvalidRequestError(registry.unknown("field", name[:100], ("verdict", *_TEXTS)))
    if document.get("verdict") not in _VERDICTS:
        raise InvalidRequestError("'verdict' must be 'up' or 'down'")
    given = {name: value for name, value in document.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str) or len(value) > _MOST_TEXT:
            raise InvalidRequestError(f"'{name}' must be a text of at most {_MOST_TEXT} characters")
    return given
