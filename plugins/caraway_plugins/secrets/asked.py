"""Secrets that a service gives by name: those that were asked for are kept, and read again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.refreshing import FIRST_WAIT_S, USUAL_S, ReadSecrets, RefreshedSecrets


@dataclass(frozen=True, slots=True)
class ReadSecret:
    """A secret; None if there is none. An `error` is about this one alone.

    It is valid for so many seconds; None: until it is changed.
    """

    value: str | None = field(repr=False)
    valid_s: float | None = None
    error: CarawayError | None = None


class SecretPlace(Protocol):
    """A place that gives one secret by its name."""

    def read_secret(self, name: str) -> ReadSecret:
        """Read a secret. Blocks.

        Raises:
            CarawayError: the place could not be read.
        """
        ...


class AskedSecrets(RefreshedSecrets):
    """Implements `SecretStore` over a place that gives one secret by its name.

    The first `get` of a name waits until the thread has read it; further ones are answered from
    memory.
    """

    def __init__(self, title: str, place: SecretPlace, usual_s: float = USUAL_S) -> None:
        """Begin to read. `title` names the place in errors and logs."""
        found: dict[str, ReadSecret | None] = {}
        self._found = found
        super().__init__(title, partial(_read_all, found, place), usual_s)

    def get(self, name: str) -> str | None:
        """Return a secret, or None if there is none of this name.

        Raises:
            CarawayError: it could not be read yet.
        """
        state, until_s = self._state, time.monotonic() + FIRST_WAIT_S
        is_first = name not in self._found
        secret = self._found.setdefault(name, None)
        while secret is None:
            if is_first or state.error is None:
                state.read_now()
            is_first = False
            # If the place is away, each name would wait for it, on the loops of all requests.
            if state.error is not None:
                raise state.error
            if not state.is_tried.wait(max(0.0, until_s - time.monotonic())):
                raise CarawayError(f"{self._title} does not answer; it is tried again")
            secret = self._found[name]
        if secret.error is not None:
            raise secret.error
        return secret.value


def _read_all(found: dict[str, ReadSecret | None], place: SecretPlace) -> ReadSecrets:
    valid_s: list[float] = []
    for name in tuple(found):
        secret = found[name] = place.read_secret(name)
        if secret.valid_s is not None:
            valid_s.append(secret.valid_s)
    return ReadSecrets({}, min(valid_s, default=None))
