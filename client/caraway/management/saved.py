"""The credentials of `caraway login`, in a file that only its user may read.

{"current": "http://127.0.0.1:8070", "services": {"http://127.0.0.1:8070": {"token": "..."}}}
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from caraway.requests import profiles
from caraway_core.errors import CarawayError

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class SavedCredential:
    """What is known of one service. A credential is sent to the service that it is for only."""

    token: str = field(default="", repr=False)
    username: str = ""
    org: str = ""
    """The organization that is used if none is named."""
    token_id: int | None = None
    """The token is one of `caraway login`, and ends with `caraway logout`."""


@dataclass(frozen=True, slots=True)
class SavedCredentials:
    """The contents of the file."""

    current: str = ""
    """The URL of the service of the last sign-in."""
    services: Mapping[str, SavedCredential] = field(default_factory=dict)

    def credential_of(self, url: str) -> SavedCredential:
        """Return what is known of a service."""
        return self.services.get(normal(url), SavedCredential())

    def with_service(self, url: str, credential: SavedCredential) -> "SavedCredentials":
        """Return these credentials with those of a service, which is the current one then."""
        return SavedCredentials(normal(url), {**self.services, normal(url): credential})

    def without(self, url: str) -> "SavedCredentials":
        """Return these credentials without those of a service."""
        left = {name: each for name, each in self.services.items() if name != normal(url)}
        return SavedCredentials("" if self.current == normal(url) else self.current, left)


def normal(url: str) -> str:
    """Return a URL in the form in which services are compared."""
    text = url.strip().rstrip("/")
    return text if "://" in text else f"http://{text}"


def path() -> Path:
    """Return the path of the file, below `XDG_CONFIG_HOME` if that is set."""
    return profiles.config_path().with_name("credentials.json")


def load(file: Path) -> SavedCredentials:
    """Return the credentials of a file, which may be missing.

    Raises:
        CarawayError: the file is not valid, or others may read it.
    """
    try:
        mode = file.stat().st_mode
        document = json.loads(file.read_text(encoding="utf-8"))
        services = {url: SavedCredential(**entry) for url, entry in document["services"].items()}
        credentials = SavedCredentials(str(document["current"]), services)
    except FileNotFoundError:
        return SavedCredentials()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise CarawayError(
            f"cannot read {file}: {type(exc).__name__}; delete it and run `caraway login`"
        ) from exc
    if mode & 0o077:
        raise CarawayError(f"other users may read {file}; run: chmod 600 {file}")
    return credentials


def save(file: Path, credentials: SavedCredentials) -> None:
    """Replace the file. Only the user may read it, not even while it is written."""
    services = {url: asdict(each) for url, each in credentials.services.items()}
    text = json.dumps({"current": credentials.current, "services": services}, indent=2) + "\n"
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        new.replace(file)
    except OSError as exc:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise CarawayError(f"cannot write {file}: {exc.strerror}") from exc
