"""Principals: the callers of the API, and their rights."""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from caraway_core.ids import PUBLIC, PrincipalId


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller; cached results and jobs are never shared between principals."""

    id: PrincipalId
    may_write: bool
    is_admin: bool = False
    """True if it sees the statements of all principals in `runtime.task_history`."""

    @property
    def access(self) -> str:
        """The access as keys are written: `ro`, `rw` or `admin`."""
        return "admin" if self.is_admin else "rw" if self.may_write else "ro"

    @property
    def viewer(self) -> PrincipalId | None:
        """The principal whose rows it sees; None means all principals."""
        return None if self.is_admin else self.id


ANONYMOUS = Principal(PUBLIC, may_write=True, is_admin=True)
"""The principal of all requests if no keys are configured."""


class Keyring:
    """The API keys of a runtime, held as digests."""

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        self.replace(keys)

    def replace(self, keys: Iterable[tuple[str, str]]) -> None:
        """Use other keys from now on. Requests that are under way go on."""
        self._principals = [
            (
                digest,
                Principal(
                    PrincipalId(f"key-{digest.hex()[:12]}"),
                    may_write=mode in ("rw", "admin"),
                    is_admin=mode == "admin",
                ),
            )
            for key, mode in keys
            if key and (digest := _digest(key))
        ]

    def knows(self, principal: Principal) -> bool:
        """Return whether a key of the principal is still accepted."""
        return any(each == principal for _, each in self._principals)

    def find(self, key: str) -> Principal | None:
        """Compare with every key in constant time."""
        given = _digest(key)
        found = None
        for digest, principal in self._principals:
            if hmac.compare_digest(digest, given) and found is None:
                found = principal
        return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def presented_key(x_api_key: str | None, authorization: str | None) -> str | None:
    """Return the key from the headers; an empty key counts as absent."""
    if stripped := (x_api_key or "").strip():
        return stripped
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
