"""A caller with each kind of credential of a user in an organization.

The command line's is what a device sign-in gives; the granted program registered itself, as clients
of MCP do.
"""

from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import clients, sessions, tokens
from caraway_management.credentials.oauth import Issuer
from caraway_management.credentials.values import Prefix
from caraway_management.domain.scopes import EVERYTHING, Role
from caraway_management.store.tables import Org, User
from tests.kit.management import Caller, Installation

COOKIE = "session cookie"
"""The session as browsers send it, with the text against forged requests."""
KINDS = (
    "personal token",
    "token of one organization",
    "command line",
    "session",
    COOKIE,
    "machine",
    "granted program",
)


def callers(
    installation: Installation, user: User, org: Org, *scopes: str, role: Role = Role.OWNER
) -> Mapping[str, Caller]:
    """Return a caller for each of KINDS. A session has all scopes, and names no organization."""
    given = list(scopes or (EVERYTHING,))
    services, now = installation.services, installation.clock()
    issuer = Issuer(services.credentials, services.sealer)

    async def make(session: AsyncSession) -> list[str]:
        present = await session.get_one(User, user.id)
        personal = await tokens.add_token(session, now, present, "p", scopes=given)
        bound = await tokens.add_token(session, now, present, "b", scopes=given, org_id=org.id)
        line = await tokens.add_token(
            session, now, present, "c", scopes=given, prefix=Prefix.CLI_TOKEN
        )
        portal = await sessions.add_session(session, now, present, "testclient", "a browser")
        machine, _ = await clients.add_client(
            session, now, org.id, "m", "", given, None, role, present.id
        )
        program = await clients.register(session, now, "a program", ["https://example.com/"])
        grant = await tokens.add_token(
            session, now, present, "g", scopes=given, prefix=Prefix.REFRESH_TOKEN,
            client_id=program.client_id,
        )  # fmt: skip
        signed = [
            await issuer.access_token(session, now, machine, given),
            await issuer.access_token(session, now, program, given, grant.row),
        ]
        values = [personal.value, bound.value, line.value, portal.value]
        return values + [each["access_token"] for each in signed]

    values = installation.change(make)
    kinds = [kind for kind in KINDS if kind != COOKIE]
    found = {
        kind: Caller(installation.client, value) for kind, value in zip(kinds, values, strict=True)
    }
    return found | {COOKIE: Caller.with_cookie(installation.client, found["session"].token or "")}
