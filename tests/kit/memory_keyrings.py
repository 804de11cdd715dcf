"""Keyrings in memory, which tests name as the backend of the package `keyring`."""

from typing import ClassVar

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, NoKeyringError, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """Keeps passwords by service and user; it is never chosen by itself."""

    priority: ClassVar[float] = 0.0
    passwords: ClassVar[dict[tuple[str, str], str]] = {}

    def get_password(self, service: str, username: str) -> str | None:
        if service == "locked":
            raise KeyringLocked("hunter2 is locked")
        if service == "none":
            raise NoKeyringError("no hunter2")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.passwords.pop((service, username), None) is None:
            raise PasswordDeleteError("there is none")
