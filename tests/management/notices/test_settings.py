import pytest

from caraway_core.errors import CarawayError
from caraway_management.notices import settings
from caraway_management.notices.settings import MailServer

SENDER = "Caraway <caraway@example.com>"


def test_nothing_is_configured_by_default() -> None:
    found = settings.read({})
    assert found == settings.NoticeSettings()
    assert not found.channels.has_email
    assert not found.channels.has_slack
    assert not found.outside.allows_inside


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.com", MailServer("mail.example.com", 587, SENDER)),
        (
            "smtps://me:p%40ss@mail.example.com",
            MailServer("mail.example.com", 465, SENDER, "me", "p@ss", uses_tls=True),
        ),
        ("smtp+plain://localhost:2525", MailServer("localhost", 2525, SENDER, is_plain=True)),
    ],
)
def test_mail_servers(url: str, expected: MailServer) -> None:
    found = settings.read({settings.SMTP_URL: url, settings.SMTP_FROM: SENDER})
    assert found.mail == expected
    assert "p@ss" not in repr(found)


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("smtp://:hunter2@", SENDER),
        ("http://me:hunter2@mail.example.com", SENDER),
        ("smtp://me:hunter2@mail.example.com:x", SENDER),
        ("smtp://me:hunter2@mail.example.com/path", SENDER),
        ("smtp://me:hunter2@mail.example.com", "nobody"),
        ("smtp://me:hunter2@mail.example.com", "a@b.c\nBcc: d@e.f"),
        ("smtp://me:hunter2@mail.example.com", ""),
    ],
)
def test_what_is_no_mail_server_is_refused_without_its_password(url: str, sender: str) -> None:
    with pytest.raises(CarawayError) as refused:
        settings.read({settings.SMTP_URL: url, settings.SMTP_FROM: sender})
    assert "hunter2" not in str(refused.value)


def test_slack_and_private_addresses() -> None:
    found = settings.read({settings.SLACK_TOKEN: "xoxb-1", settings.ALLOW_INSIDE: "true"})
    assert found.channels.has_slack
    assert found.channels.outside.allows_inside
    assert "xoxb" not in repr(found)
