"""Settings of an installation for sending notices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from caraway_core.errors import CarawayError
from caraway_core.security import secret_urls
from caraway_management.domain.addresses import Outside
from caraway_management.domain.monitors import Channels

SMTP_URL = "CARAWAY_MANAGEMENT_SMTP_URL"
SMTP_FROM = "CARAWAY_MANAGEMENT_SMTP_FROM"
SLACK_TOKEN = "CARAWAY_MANAGEMENT_SLACK_TOKEN"
ALLOW_INSIDE = "CARAWAY_MANAGEMENT_NOTICES_INSIDE"
_FORM = "smtp://USER:PASSWORD@HOST:587, smtps:// for TLS, or smtp+plain:// without TLS"
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}


@dataclass(frozen=True, slots=True)
class MailServer:
    """The SMTP server of the installation."""

    host: str
    port: int
    sender: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    uses_tls: bool = False
    """TLS from the start; otherwise STARTTLS is required, unless `is_plain`."""
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class NoticeSettings:
    """The channels for sending notices."""

    mail: MailServer | None = None
    slack_token: str | None = field(default=None, repr=False)
    slack_url: str = "https://slack.com/api/chat.postMessage"
    outside: Outside = field(default_factory=Outside)

    @property
    def channels(self) -> Channels:
        """The channels that monitors of this installation may use."""
        return Channels(self.mail is not None, self.slack_token is not None, self.outside)


def read(environment: Mapping[str, str]) -> NoticeSettings:
    """Return the settings from environment variables: they contain passwords.

    Raises:
        CarawayError: one is wrong. The message has no password.
    """
    url, sender = environment.get(SMTP_URL), environment.get(SMTP_FROM)
    if bool(url) != bool(sender):
        raise CarawayError(f"set both {SMTP_URL} and {SMTP_FROM}, or neither")
    return NoticeSettings(
        parse_mail_server(url, sender) if url and sender else None,
        environment.get(SLACK_TOKEN) or None,
        outside=Outside(environment.get(ALLOW_INSIDE, "").lower() in ("1", "true")),
    )


def parse_mail_server(url: str, sender: str) -> MailServer:
    """Return the mail server of a URL.

    Raises:
        CarawayError: it is none.
    """
    try:
        parts = secret_urls.split(url)
    except ValueError as exc:
        raise CarawayError(f"{SMTP_URL}: {exc}; it must be {_FORM}") from None
    host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    if not host or port is None or parts.path.strip("/") or parts.query:
        raise CarawayError(f"{SMTP_URL} must be {_FORM}")
    if "@" not in sender or not sender.isprintable():
        raise CarawayError(f"{SMTP_FROM} must be an e-mail address")
    return MailServer(
        host, port, sender,
        unquote(parts.username) if parts.username else None,
        unquote(parts.password) if parts.password else None,
        parts.scheme == "smtps", parts.scheme == "smtp+plain",
    )  # fmt: skip
