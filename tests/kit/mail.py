"""A real SMTP server on this machine, which keeps the messages that it takes."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass(slots=True)
class MailBox:
    """The mail that the server received."""

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Recipients that it does not take."""

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.messages.append(parsed)
        self.recipients += envelope.rcpt_tos
        return "250 OK"

    def authenticate(self, login: str, password: str) -> bool:
        self.logins.append(login)
        return password == "letmein"


@contextlib.asynccontextmanager
async def serving(
    context: ssl.SSLContext | None = None,
    *,
    tls_from_start: bool = False,
    needs_login: bool = False,
) -> AsyncIterator[MailBox]:
    """Serve SMTP on 127.0.0.1; the password of every user is `letmein`."""
    box = MailBox()

    def authenticate(
        _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        is_right = box.authenticate(data.login.decode(), data.password.decode())
        return AuthResult(success=is_right, handled=False)

    def connected() -> SMTP:
        return SMTP(
            box,
            hostname="mail.test",
            tls_context=None if tls_from_start else context,
            require_starttls=context is not None and not tls_from_start,
            auth_required=needs_login,
            auth_require_tls=not tls_from_start and context is not None,
            authenticator=authenticate if needs_login else None,
            loop=asyncio.get_running_loop(),
        )

    server = await asyncio.get_running_loop().create_server(
        connected, "127.0.0.1", 0, ssl=context if tls_from_start else None
    )
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
