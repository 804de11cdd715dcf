"""Gives requests the address of their client, where a trusted proxy names it."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_management.domain import proxies
from caraway_management.domain.proxies import Network


class ForwardedGate:
    """Replaces the peer of a connection: rates, lock-outs and the activity log count by it."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if self._trusted and peer:
            forwarded = Headers(scope=scope).getlist("x-forwarded-for")
            address = proxies.client_address(peer[0], forwarded, self._trusted)
            if address != peer[0]:
                scope["client"] = (address, 0)
        await self._app(scope, receive, send)
