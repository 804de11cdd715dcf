"""Sends letters by e-mail."""

import ssl
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Protocol

import aiosmtplib

from caraway_core.errors import CarawayError
from caraway_management.notices.settings import MailServer

_TIMEOUT_S = 15.0


class Letter(Protocol):
    """A message to people."""

    @property
    def id(self) -> str:
        """The same for each repetition."""

    @property
    def at(self) -> datetime:
        """When it was written."""

    @property
    def title(self) -> str:
        """The subject line."""

    @property
    def text(self) -> str:
        """The words."""


class MailError(CarawayError):
    """The mail server did not take a message."""


async def send_mail(
    server: MailServer,
    letter: Letter,
    recipients: Sequence[str],
    context: ssl.SSLContext | None = None,
) -> None:
    """Send a letter to each recipient, in messages of their own: they do not see each other.

    Raises:
        MailError: the server is away, or took none of the messages.
    """
    refused: list[str] = []
    try:
        async with aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.uses_tls,
            start_tls=not server.uses_tls and not server.is_plain,
            tls_context=context,
            timeout=_TIMEOUT_S,
        ) as client:
            for recipient in recipients:
                try:
                    await client.send_message(_message(server, letter, recipient))
                except aiosmtplib.SMTPRecipientsRefused as exc:
                    refused.append(str(exc.recipients[0].code))
    except (aiosmtplib.SMTPException, OSError, ValueError) as exc:
        raise MailError(f"the mail server did not take it: {type(exc).__name__}") from exc
    if refused and len(refused) == len(recipients):
        raise MailError(
            f"the mail server refused every recipient: {', '.join(sorted(set(refused)))}"
        )


def _message(server: MailServer, letter: Letter, recipient: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = server.sender
    message["To"] = recipient
    message["Subject"] = letter.title
    message["Date"] = format_datetime(letter.at)
    # The same for each repetition, so that mail programs show one message.
    message["Message-ID"] = f"<{letter.id}@{server.sender.rpartition('@')[2].strip('<> ')}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    return message
