"""Named connections in `~/.config/caraway/config.toml`.

default_profile = "dev"

[profiles.dev]
url = "http://127.0.0.1:8090"

[profiles.prod]
url = "https://data.example.com"
flight_url = "grpc+tls://data.example.com:443"
api_key = "..."
cacert = "/etc/ssl/example-ca.pem"
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from caraway_core.errors import CarawayError


@dataclass(frozen=True, slots=True)
class ConnectionProfile:
    """One named connection. Empty fields have their defaults."""

    url: str = ""
    flight_url: str = ""
    api_key: str = field(default="", repr=False)
    cacert: str = ""


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the config file, below `XDG_CONFIG_HOME` if that is set."""
    found = (os.environ if environ is None else environ).get("XDG_CONFIG_HOME", "")
    home = Path(found) if found.startswith("/") else Path.home() / ".config"
    return home / "caraway" / "config.toml"


def load(file: Path, name: str | None) -> ConnectionProfile:
    """Return a profile, or without a name the default one, which may be missing.

    Raises:
        CarawayError: the file is not valid or does not have the profile.
    """
    document = _read(file)
    wanted = name or document.get("default_profile")
    if wanted is None:
        return ConnectionProfile()
    if not isinstance(wanted, str):
        raise CarawayError(f"{file}: the key 'default_profile' must be a string")
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict) or not isinstance(profiles.get(wanted), dict):
        known = ", ".join(sorted(profiles)) if isinstance(profiles, dict) else ""
        raise CarawayError(
            f"there is no profile '{wanted}' in {file}; "
            + (f"known profiles: {known}" if known else "the file has none")
        )
    return _parse(file, wanted, profiles[wanted])


# Any: whatever the file holds.
def _parse(file: Path, name: str, entries: Mapping[str, Any]) -> ConnectionProfile:
    known = [each.name for each in fields(ConnectionProfile)]
    for key, content in entries.items():
        if key not in known:
            raise CarawayError(
                f"{file}: profile '{name}' has the unknown key '{key}'; keys: {', '.join(known)}"
            )
        if not isinstance(content, str):
            raise CarawayError(f"{file}: the key '{key}' of profile '{name}' must be a string")
    return ConnectionProfile(**entries)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise CarawayError(f"cannot read {file}: {exc}") from exc
