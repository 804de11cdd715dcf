"""Secrets of the keyring of the operating system: `from: keyring` or `keyring:SERVICE`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, KeyringLocked, NoKeyringError

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.asked import AskedSecrets, ReadSecret

_SERVICE = "caraway"
_BACKEND = "PYTHON_KEYRING_BACKEND"


class KeyringSecrets(AskedSecrets):
    """The passwords of one service of a keyring, by their user names."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        service = params.get("path") or _SERVICE
        title = f"the keyring of '{service}'"
        opened = cache(partial(_opened, title, environ.get(_BACKEND)))
        super().__init__(title, lambda name: _read(title, opened(), service, name))


def _opened(title: str, name: str | None) -> KeyringBackend:
    if not name:
        return keyring.get_keyring()
    try:
        return keyring.core.load_keyring(name)
    except (ImportError, AttributeError, ValueError, RuntimeError):
        raise CarawayError(
            f"{title} cannot be opened: {_BACKEND} is '{name}', which is no keyring here"
        ) from None


def _read(title: str, backend: KeyringBackend, service: str, name: str) -> ReadSecret:
    try:
        return ReadSecret(backend.get_password(service, name))
    except NoKeyringError:
        raise CarawayError(
            f"{title} cannot be read: this machine has none; install one, or set {_BACKEND}"
        ) from None
    except KeyringLocked:
        raise CarawayError(f"{title} cannot be read: it is locked; unlock it") from None
    except KeyringError as exc:
        # Not chained: messages of backends may quote what they were given.
        raise CarawayError(f"{title} cannot be read: {type(exc).__name__}") from None
