import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from caraway_management.notices import mail
from caraway_management.notices.mail import MailError
from caraway_management.notices.messages import Notice
from caraway_management.notices.settings import MailServer
from tests.kit import certificates
from tests.kit import mail as mail_kit

SENDER = "Caraway <caraway@example.com>"
NOTICE = Notice(
    "msg_1",
    "monitor.fired",
    datetime(2026, 11, 26, 12, tzinfo=UTC),
    "Fail\u00fcres\r\nBcc: victim@example.com",
    "project 'shop'",
    "Failed queries over 5m is more than 5.",
    {"severity": "critical", "details": {"value": 7.0}},
)


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts of a server on 127.0.0.1 and of a client that trusts it."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificates.make_certificate(certificate, key, is_authority=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


async def test_a_notice_arrives_once_per_recipient() -> None:
    async with mail_kit.serving() as box:
        server = MailServer("127.0.0.1", box.port, SENDER, is_plain=True)
        await mail.send_mail(server, NOTICE, ["a@example.com", "b@example.com"])
    assert box.recipients == ["a@example.com", "b@example.com"]
    first, second = box.messages
    assert (first["To"], second["To"]) == ("a@example.com", "b@example.com")
    assert first["From"] == SENDER
    assert first["Subject"] == (
        "Alert (critical): Fail\u00fcres Bcc: victim@example.com on project 'shop'"
    )
    assert first["Bcc"] is None
    assert first["Message-ID"] == "<msg_1@example.com>"
    text = first.get_content()
    assert "Failed queries over 5m is more than 5." in text
    assert '"value": 7.0' in text


async def test_starttls_and_login(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    ours, trusting = contexts
    async with mail_kit.serving(ours, needs_login=True) as box:
        server = MailServer("127.0.0.1", box.port, SENDER, "me", "letmein")
        await mail.send_mail(server, NOTICE, ["a@example.com"], trusting)
        assert (box.logins, box.recipients) == (["me"], ["a@example.com"])
        wrong = MailServer("127.0.0.1", box.port, SENDER, "me", "hunter2")
        with pytest.raises(MailError) as refused:
            await mail.send_mail(wrong, NOTICE, ["a@example.com"], trusting)
        assert "hunter2" not in str(refused.value)
        # A certificate that is not trusted.
        with pytest.raises(MailError):
            await mail.send_mail(server, NOTICE, ["a@example.com"])
    assert len(box.messages) == 1


async def test_tls_from_the_start(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    ours, trusting = contexts
    async with mail_kit.serving(ours, tls_from_start=True) as box:
        server = MailServer("127.0.0.1", box.port, SENDER, uses_tls=True)
        await mail.send_mail(server, NOTICE, ["a@example.com"], trusting)
    assert len(box.messages) == 1


async def test_a_server_without_tls_gets_nothing_unless_it_is_configured_so() -> None:
    async with mail_kit.serving() as box:
        server = MailServer("127.0.0.1", box.port, SENDER, "me", "letmein")
        with pytest.raises(MailError):
            await mail.send_mail(server, NOTICE, ["a@example.com"])
    assert (box.messages, box.logins) == ([], [])


async def test_a_recipient_that_is_refused_does_not_keep_it_from_the_others() -> None:
    async with mail_kit.serving() as box:
        box.refused = {"a@example.com"}
        server = MailServer("127.0.0.1", box.port, SENDER, is_plain=True)
        await mail.send_mail(server, NOTICE, ["a@example.com", "b@example.com"])
        with pytest.raises(MailError, match="refused every recipient: 550"):
            await mail.send_mail(server, NOTICE, ["a@example.com"])
    assert box.recipients == ["b@example.com"]


async def test_a_server_that_is_away_is_reported() -> None:
    async with mail_kit.serving() as box:
        pass
    server = MailServer("127.0.0.1", box.port, SENDER, is_plain=True)
    with pytest.raises(MailError, match="SMTPConnectError"):
        await mail.send_mail(server, NOTICE, ["a@example.com"])
