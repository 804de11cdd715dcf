"""Sends the notices of the outbox."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import CarawayError
from caraway_management.monitoring.targets import GONE, HTTP, place
from caraway_management.notices import mail, sending
from caraway_management.notices.dialing import Dialer
from caraway_management.notices.messages import Notice
from caraway_management.notices.sending import Outcome
from caraway_management.outbox import Again, Entry
from caraway_management.services import Services
from caraway_management.store.tables import Member, Monitor, Reaction, User

logger = logging.getLogger(__name__)
WAITS_S = (60, 600, 3_600, 4 * 3_600, 12 * 3_600, 24 * 3_600)
"""The waits between tries: 7 tries within 41 hours."""


@dataclass(frozen=True, slots=True)
class _Target:
    """A target with its secrets and its recipients."""

    values: Mapping[str, Any]
    token: str | None = None
    signing_secret: str | None = None
    recipients: tuple[str, ...] = ()


class Deliverer:
    """Sends notices by e-mail, to Slack and to webhooks, until they are taken."""

    def __init__(self, services: Services, dialer: Dialer | None = None) -> None:
        self._services = services
        self._dialer = dialer or Dialer(services.notices.outside)

    async def deliver(self, entry: Entry) -> Again | None:
        """Send the notice of an entry, or say when to try again."""
        payload = entry.payload
        owner, owner_id, name = payload["owner_kind"], payload["owner_id"], payload["target"]
        async with self._services.database.read() as session:
            target = await self._read(session, owner, owner_id, name)
        if target is None:
            # The monitor or the target is gone, or switched off.
            return None
        try:
            outcome = await self._send(name, target, Notice.from_json(payload["notice"]))
        except CarawayError as exc:
            return self._again(entry, exc)
        if outcome is Outcome.GONE:
            await self._switch_off(owner, owner_id, target)
        return None

    def _again(self, entry: Entry, exc: CarawayError) -> Again | None:
        extra = {"subject": entry.subject, "try": entry.attempts, "reason": str(exc)}
        if entry.attempts > len(WAITS_S):
            logger.warning("a notice was given up", extra=extra)
            return None
        logger.info("a notice was not taken", extra=extra)
        return Again(WAITS_S[entry.attempts - 1])

    async def _send(self, name: str, target: _Target, notice: Notice) -> Outcome:
        settings, values = self._services.notices, target.values
        if name == HTTP:
            return await sending.send_webhook(
                self._dialer, values["method"], values["url"], target.signing_secret,
                target.token, notice, self._services.now(),
            )  # fmt: skip
        if name == "slack":
            await sending.send_to_slack(self._dialer, settings, values["channelId"], notice)
        elif settings.mail is None:
            raise mail.MailError("this installation has no mail server")
        elif target.recipients:
            await mail.send_mail(settings.mail, notice, target.recipients)
        return Outcome.TAKEN

    async def _read(
        self, session: AsyncSession, owner: str, owner_id: str, name: str
    ) -> _Target | None:
        row = await _find(session, owner, owner_id)
        values = row.targets.get(name) if row is not None and row.is_enabled else None
        if row is None or values is None or values.get("disabled_reason") is not None:
            return None
        if name == HTTP:
            return _Target(
                values,
                await self._open(session, owner_id, values, "token"),
                await self._open(session, owner_id, values, "signing_secret"),
            )
        if name == "email":
            return _Target(values, recipients=await _recipients(session, row.org_id, values))
        return _Target(values)

    async def _open(
        self, session: AsyncSession, owner_id: str, values: Mapping[str, Any], field: str
    ) -> str | None:
        sealed = values.get(f"sealed_{field}")
        if sealed is None:
            return None
        return await self._services.sealer.open(session, sealed, place(owner_id, field))

    async def _switch_off(self, owner: str, owner_id: str, target: _Target) -> None:
        async with self._services.database.change() as session:
            row = await _find(session, owner, owner_id, locks=True)
            # Unless its user has changed it in the meantime.
            if row is not None and row.targets.get(HTTP) == target.values:
                row.targets = row.targets | {HTTP: {**target.values, "disabled_reason": GONE}}
                row.revision += 1
        logger.warning("a webhook is switched off", extra={owner: owner_id, "reason": GONE})


async def _find(
    session: AsyncSession, owner: str, owner_id: str, *, locks: bool = False
) -> Monitor | Reaction | None:
    if owner == "monitor":
        return await session.get(Monitor, owner_id, with_for_update=locks)
    return await session.get(Reaction, owner_id, with_for_update=locks)


async def _recipients(
    session: AsyncSession, org_id: int, values: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the addresses of a target; those of users as long as they are members."""
    emails = list(values.get("emails", ()))
    if ids := values.get("recipientUserIds"):
        emails += await session.scalars(
            select(User.email)
            .join(Member, (Member.user_id == User.id) & (Member.org_id == org_id))
            .where(User.id.in_(ids), User.deleted_at.is_(None), User.email.is_not(None))
            .order_by(User.id)
        )
    return tuple(dict.fromkeys(emails))
