"""Secrets of a service, in memory: read at the start, and again before they expire."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from caraway_core.errors import CarawayError

logger = logging.getLogger(__name__)
FIRST_WAIT_S = 15.0
USUAL_S = 60.0
_LEAST_S = 1.0
_PART = 2 / 3
"""The part of the life of secrets after which they are read again."""
_LONGEST_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class ReadSecrets:
    """Secrets by name, and how many seconds they are valid; None: until they are changed."""

    values: Mapping[str, str] = field(repr=False)
    valid_s: float | None = None


@dataclass(slots=True)
class _State:
    """The secrets that were read last, and why a later attempt failed."""

    values: Mapping[str, str] | None = field(default=None, repr=False)
    error: CarawayError | None = None
    is_tried: threading.Event = field(default_factory=threading.Event)
    wakes: threading.Event = field(default_factory=threading.Event)
    is_over: bool = False

    def read_now(self) -> None:
        """Have the thread read without waiting for its time."""
        self.is_tried.clear()
        self.wakes.set()

    def end(self) -> None:
        """Have the thread end."""
        self.is_over = True
        self.wakes.set()


class RefreshedSecrets:
    """Implements `SecretStore` over a call that reads all secrets of a place.

    The call runs in a thread, so `get` waits for a service only until its first answer. The thread
    ends with the store. If the service is away, the secrets that were read before stay.
    """

    def __init__(
        self, title: str, read: Callable[[], ReadSecrets], usual_s: float = USUAL_S
    ) -> None:
        """Begin to read. `title` names the place in errors and logs."""
        self._title = title
        self._state = _State()
        weakref.finalize(self, self._state.end)
        arguments = (title, read, usual_s, self._state)
        threading.Thread(target=_keep, args=arguments, name="secrets", daemon=True).start()

    def get(self, name: str) -> str | None:
        """Return a secret, or None if the place does not hold it.

        Raises:
            CarawayError: the place could not be read yet.
        """
        state = self._state
        if not state.is_tried.wait(FIRST_WAIT_S):
            raise CarawayError(f"{self._title} does not answer; it is tried again")
        if state.values is None:
            assert state.error is not None
            raise state.error
        return state.values.get(name)


def _keep(
    title: str,
    read: Callable[[], ReadSecrets],
    usual_s: float,
    state: _State,
) -> None:
    """Read secrets until the store is gone."""
    retry_s = _LEAST_S
    while True:
        try:
            secrets = read()
            valid_s = usual_s if secrets.valid_s is None else _PART * secrets.valid_s
            next_s = max(_LEAST_S, min(usual_s, valid_s))
        # The thread goes on whatever an answer holds: without it, all secrets would expire.
        except Exception as exc:  # noqa: BLE001
            state.error = _named(title, exc)
            reason = state.error.message
            logger.warning("secrets cannot be read", extra={"store": title, "reason": reason})
            wait_s, retry_s = retry_s, min(2 * retry_s, _LONGEST_RETRY_S)
        else:
            state.values, state.error = secrets.values, None
            wait_s, retry_s = next_s, _LEAST_S
        state.is_tried.set()
        state.wakes.wait(wait_s)
        state.wakes.clear()
        if state.is_over:
            return


def _named(title: str, exc: Exception) -> CarawayError:
    """Return an error that quotes no answer."""
    if isinstance(exc, CarawayError):
        return exc
    return CarawayError(f"{title} cannot be read: the answer has another form; it is tried again")
