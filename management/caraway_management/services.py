"""Services that every request and every background task uses."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from caraway_core.concurrency.clocks import DateClock
from caraway_management.credentials.oidc import Oidc
from caraway_management.credentials.passwords import Passwords
from caraway_management.credentials.settings import CredentialSettings
from caraway_management.deployers.protocol import Deployer, NoDeployer
from caraway_management.domain.platform import Platform
from caraway_management.domain.proxies import Network
from caraway_management.notices.settings import NoticeSettings
from caraway_management.sealing.sealer import Sealer
from caraway_management.store.database import Database


def utc_now() -> datetime:
    """Return the time. Tests give a clock of their own."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Rates:
    """The number of requests that one credential may send to one instance."""

    per_minute: int = 1_000
    per_hour: int = 10_000


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one instance. Parts of single resources are modules that take a session."""

    database: Database
    sealer: Sealer
    now: DateClock = utc_now
    rates: Rates = Rates()
    deployer: Deployer = field(default_factory=NoDeployer)
    trusted_proxies: tuple[Network, ...] = ()
    """The proxies whose X-Forwarded-For is read."""
    notices: NoticeSettings = field(default_factory=NoticeSettings)
    platform: Platform = field(default_factory=Platform)
    credentials: CredentialSettings = field(default_factory=CredentialSettings)
    passwords: Passwords = field(default_factory=Passwords)
    oidc: Oidc | None = None
    """The issuer that users may sign in with."""
