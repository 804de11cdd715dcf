"""Sessions of MCP are counted by key, and those used least recently make room."""

from typing import Any

from starlette.types import Message, Scope

from caraway_core.ids import PrincipalId
from caraway_gateway.mcp.sessions import McpSession, McpSessions

ONE, OTHER = PrincipalId("one"), PrincipalId("other")


class Ended(list[McpSession]):
    """Records the sessions that were ended."""

    async def end_session(self, session: McpSession) -> None:
        self.append(session)


async def answered(
    sessions: McpSessions, *, given: str = "", begun: str = "", method: str = "POST",
    status: int = 200, principal: PrincipalId = ONE,
) -> None:  # fmt: skip
    def headers(session: str) -> list[Any]:
        return [(b"Mcp-Session-Id", session.encode())] if session else []

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": method, "headers": headers(given)}
    follow = sessions.following(principal, scope, send)
    await follow({"type": "http.response.start", "status": status, "headers": headers(begun)})
    await follow({"type": "http.response.body"})
    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]


async def test_the_session_used_least_recently_makes_room() -> None:
    ended = Ended()
    sessions = McpSessions(2, ended)
    for name in ("a", "b"):
        await answered(sessions, begun=name)
    await answered(sessions, given="a")
    await answered(sessions, begun="c")
    assert ended == [(ONE, "b")]


async def test_another_key_has_sessions_of_its_own() -> None:
    ended = Ended()
    sessions = McpSessions(1, ended)
    await answered(sessions, begun="a")
    await answered(sessions, begun="b", principal=OTHER)
    assert ended == [] and sessions.quota.holders == 2


async def test_sessions_that_end_are_counted_no_more() -> None:
    sessions = McpSessions(9, Ended())
    for name in ("a", "b"):
        await answered(sessions, begun=name)
    await answered(sessions, given="a", method="DELETE")
    await answered(sessions, given="b", status=404)
    assert len(sessions.quota) == 0


async def test_a_request_that_fails_begins_and_ends_none() -> None:
    sessions = McpSessions(9, Ended())
    await answered(sessions, begun="a", status=400)
    assert len(sessions.quota) == 0
    await answered(sessions, begun="b")
    await answered(sessions, given="b", method="DELETE", status=500)
    assert len(sessions.quota) == 1
