"""Sends notices by e-mail."""

import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import format_datetime

import aiosmtplib

from caraway_core.errors import CarawayError
from caraway_management.notices.messages import Notice
from caraway_management.notices.settings import MailServer

_TIMEOUT_S = 15.0


class MailError(CarawayError):
    """The mail server did not take a message."""


async def send_mail(
    server: MailServer,
    notice: Notice,
    recipients: Sequence[str],
    context: ssl.SSLContext | None = None,
) -> None:
    """Send a notice to each recipient, in messages of their own: they do not see each other.

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
                    await client.send_message(_message(server, notice, recipient))
                except aiosmtplib.SMTPRecipientsRefused as exc:
                    refused.append(str(exc.recipients[0].code))
    except (aiosmtplib.SMTPException, OSError, ValueError) as exc:
        raise MailError(f"the mail server did not take it: {type(exc).__name__}") from exc
    if refused and len(refused) == len(recipients):
        raise MailError(
            f"the mail server refused every recipient: {', '.join(sorted(set(refused)))}"
        )


def _message(server: MailServer, notice: Notice, recipient: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = server.sender
    message["To"] = recipient
    message["Subject"] = notice.title
    message["Date"] = format_datetime(notice.at)
    # The same for each repetition, so that mail programs show one message.
    message["Message-ID"] = f"<{notice.id}@{server.sender.rpartition('@')[2].strip('<> ')}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice.text)
    return message
