"""Checks JSON bodies by the rules of the runtime before the routes read them."""

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_management.api import failures
from caraway_management.domain.refusals import RefusedError
from caraway_serving import parsing
from caraway_serving.errors import RefusedRequestError
from caraway_serving.replaying import replayed

MOST_VALUES = 50_000
"""The values of a body, in all its lists and objects."""


_TOKENS = "/api/oauth/token"
"""Reads its body itself: its errors have the form of RFC 6749."""


class JsonGate:
    """Refuses JSON that is nested too deeply, has too many values or a key twice, and the like."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _has_json(scope):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        try:
            if body:
                await parsing.parsed_within(None, body, parsing.json, MOST_VALUES)
        except RefusedRequestError as exc:
            refusal = RefusedError(exc.status, exc.message, form=[exc.message])
            await failures.answer(request, refusal)(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)


def _has_json(scope: Scope) -> bool:
    """Return whether a request has a JSON body that is for a route here, not for a runtime."""
    if scope["type"] != "http" or "queries" in scope["path"].split("/"):
        return False
    if scope["path"] == _TOKENS:
        return False
    kind = Request(scope).headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
