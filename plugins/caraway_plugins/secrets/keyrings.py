"""Secrets of the keyring of the operating system: `from: keyring` or `keyring:SERVICE`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
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
        super().__init__(title, _Keyring(title, service, environ.get(_BACKEND)))


class _Keyring:
    """Implements `SecretPlace` over a backend, which is opened by the first reading."""

    def __init__(self, title: str, service: str, backend: str | None) -> None:
        self._title = title
        self._service = service
        self._name = backend

    def read_secret(self, name: str) -> ReadSecret:
        """Read a password of the service."""
        try:
            return ReadSecret(self._backend.get_password(self._service, name))
        except NoKeyringError:
            raise CarawayError(
                f"{self._title} cannot be read: this machine has none; install one, or set "
                f"{_BACKEND}"
            ) from None
        except KeyringLocked:
            raise CarawayError(f"{self._title} cannot be read: it is locked; unlock it") from None
        except KeyringError as exc:
            # Not chained: messages of backends may quote what they were given.
            raise CarawayError(f"{self._title} cannot be read: {type(exc).__name__}") from None

    @cached_property
    def _backend(self) -> KeyringBackend:
        if not self._name:
            return keyring.get_keyring()
        try:
            return keyring.core.load_keyring(self._name)
        except (ImportError, AttributeError, ValueError, RuntimeError):
            raise CarawayError(
                f"{self._title} cannot be opened: {_BACKEND} is '{self._name}', which is no "
                "keyring here"
            ) from None
