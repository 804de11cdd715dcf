"""Sends invitations by e-mail, if the installation has a mail server."""

import logging
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import outbox
from caraway_management.notices import mail
from caraway_management.notices.mail import MailError
from caraway_management.organizations.invitations import NewInvitation
from caraway_management.outbox import Again, Entry
from caraway_management.services import Services
from caraway_management.store.tables import Invitation, Org

logger = logging.getLogger(__name__)
KIND = "send invitation"
PATH = "/join"
_AGAIN_S = 600.0


@dataclass(frozen=True, slots=True)
class InvitationLetter:
    """The message of an invitation."""

    id: str
    at: datetime
    title: str
    text: str


async def enqueue(
    session: AsyncSession, now: datetime, services: Services, made: NewInvitation, inviter: str
) -> bool:
    """Have an invitation sent, in the transaction that makes it; return whether it will be.

    The value is kept sealed until then.
    """
    if services.notices.mail is None:
        return False
    id_ = made.row.id
    sealed = await services.sealer.seal(session, made.value, _place(id_))
    payload = {"invitation_id": id_, "inviter": inviter, "sealed_value": sealed}
    await outbox.enqueue(session, now, KIND, f"invitation:{id_}", payload)
    return True


class Inviter:
    """Sends the invitations of the outbox, until they are taken or no longer open."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def send(self, entry: Entry) -> Again | None:
        """Send the invitation of an entry, or say when to try again."""
        services, id_ = self._services, entry.payload["invitation_id"]
        async with services.database.read() as session:
            row = await session.get_one(Invitation, id_)
            org = await session.get_one(Org, row.org_id)
            value = await services.sealer.open(session, entry.payload["sealed_value"], _place(id_))
        is_over = row.accepted_at or row.revoked_at or row.expires_at <= services.now()
        if services.notices.mail is None or is_over:
            return None
        url = f"{services.credentials.public_url}{PATH}?{urlencode({'value': value})}"
        letter = InvitationLetter(
            f"invitation-{id_}", row.created_at, f"Invitation to {org.name}",
            f"{entry.payload['inviter']} invites you to the organization {org.name} of Caraway, "
            f"with the role {row.role}.\n\nSign in and join at:\n{url}\n\n"
            f"The link works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC. "
            "If you do not know the sender, ignore this message.",
        )  # fmt: skip
        try:
            await mail.send_mail(services.notices.mail, letter, [row.email])
        except MailError as exc:
            logger.warning("invitation not sent", extra={"invitation": id_, "reason": str(exc)})
            return Again(_AGAIN_S)
        return None


def _place(invitation_id: int) -> str:
    return f"invitation/{invitation_id}"
