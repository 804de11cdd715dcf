"""Requires an API key if keys are configured, and records the principal."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_serving.access import ANONYMOUS, Keyring, Principal, presented_key
from caraway_serving.scopes import PRINCIPAL

_UNAUTHORIZED = PlainTextResponse(
    "Unauthorized", 401, {"WWW-Authenticate": 'Bearer realm="caraway", ApiKey header="X-API-Key"'}
)


class AccessGate:
    """Requires a key for `/v1` routes if keys are configured; other routes are open.

    `refusals` are the answers without a key of path prefixes that have one of their own.
    """

    def __init__(
        self,
        app: ASGIApp,
        keyring: Keyring | None,
        refusals: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self._app = app
        self._keyring = keyring
        self._refusals = refusals or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1"):
            principal = ANONYMOUS
            if self._keyring is not None:
                headers = Headers(scope=scope)
                key = presented_key(headers.get("x-api-key"), headers.get("authorization"))
                found = self._keyring.find(key) if key else None
                if found is None:
                    await self._refusal(scope["path"])(scope, receive, send)
                    return
                principal = found
                send = _saying(found, send)
            scope[PRINCIPAL] = principal
        await self._app(scope, receive, send)

    def _refusal(self, path: str) -> ASGIApp:
        found = (own for start, own in self._refusals.items() if path.startswith(start))
        return next(found, _UNAUTHORIZED)


def _saying(principal: Principal, send: Send) -> Send:
    """Return a `send` whose response names the access of the key, so that pages offer no more."""
    access = (b"x-key-access", principal.access.encode())

    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), access]
        await send(message)

    return send_with
