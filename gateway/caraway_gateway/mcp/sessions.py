"""The sessions of MCP clients, counted by key."""

from typing import Protocol

from starlette.types import Message, Scope, Send

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import PrincipalId

MOST_SESSIONS = 10_000
_HEADER = b"mcp-session-id"
McpSession = tuple[PrincipalId, str]
"""The principal that began a session, and its id."""


class SessionEnd(Protocol):
    """Ends sessions; the endpoint implements it."""

    async def end_session(self, session: McpSession) -> None:
        """End a session as its client would."""
        ...


class McpSessions:
    """Follows the sessions of the MCP library by its answers.

    A key above its limit, or the one that has most where all are too many, loses the session that
    it used least recently. Its client begins a new one, as the protocol says.
    """

    def __init__(self, most_each: int, endpoint: SessionEnd) -> None:
        self.quota: Quota[McpSession] = Quota(
            "MCP sessions", QuotaLimits(most=MOST_SESSIONS, most_each=most_each)
        )
        self._endpoint = endpoint

    def following(self, principal: PrincipalId, scope: Scope, send: Send) -> Send:
        """Return a `send` that counts the session which the answer begins or ends."""
        given = _session_in(scope["headers"])
        if given is not None:
            self.quota.use((principal, given))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._saw(principal, scope["method"], given, message)
            await send(message)

        return sent

    async def _saw(
        self, principal: PrincipalId, method: str, given: str | None, message: Message
    ) -> None:
        is_well = message["status"] < 300
        if given is not None:
            if message["status"] == 404 or (method == "DELETE" and is_well):
                self.quota.drop((principal, given))
        elif is_well and (begun := _session_in(message.get("headers", ()))) is not None:
            for session in self.quota.add(principal, (principal, begun)):
                await self._endpoint.end_session(session)


def _session_in(headers: object) -> str | None:
    assert isinstance(headers, list | tuple)
    found = next((value for name, value in headers if name.lower() == _HEADER), None)
    return None if found is None else found.decode("latin-1")
