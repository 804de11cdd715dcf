"""Settings of an installation for its credentials."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from caraway_core.errors import CarawayError


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The OIDC issuer that users may sign in with."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    adds_users: bool = False
    """True if unknown users are added, False if they are refused."""


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """The settings of an installation."""

    public_url: str = "http://127.0.0.1:8070"
    """The URL at which users and clients reach the service: the issuer of its tokens."""

    @property
    def is_secure(self) -> bool:
        """True if browsers reach the service over TLS."""
        return self.public_url.startswith("https:")


def read_public_url(text: str) -> str:
    """Return the public URL of an installation, without a slash at the end.

    Raises:
        CarawayError: it is none.
    """
    parts = urlsplit(text)
    has_more = parts.query or parts.fragment or "@" in parts.netloc or parts.path.strip("/")
    if parts.scheme not in ("http", "https") or not parts.netloc or has_more:
        raise CarawayError("--public-url must be a URL without a path, such as https://example.com")
    return text.rstrip("/")
